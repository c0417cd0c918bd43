// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/measure"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// everyCheckMeasurable holds automatic promotions while a selected HealthCheck cannot be
// measured as it is: that must be seen before the release that needs it. A HealthCheck
// that is not enforced holds nothing.
func everyCheckMeasurable(in Input, _ v1alpha1.VersionInfo) *Hold {
	var problems []string
	for i := range in.Health.Checks {
		check := &in.Health.Checks[i]
		if problem := problemOf(check, &in.Rollout.Spec); problem != "" {
			problems = append(problems, "HealthCheck "+check.Namespace+"/"+check.Name+" "+problem)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return &Hold{Reason: v1alpha1.HealthCheckInvalidReason, Message: truncate.Join(problems, "; ")}
}

// problemOf returns why a check cannot prove any release; empty if it can, or if it need
// not.
func problemOf(check *v1alpha1.HealthCheck, spec *v1alpha1.RolloutSpec) string {
	if !check.IsMeasured() || !check.IsEnforced() {
		return ""
	}
	if check.Status.Problem != "" {
		return "cannot be measured: " + check.Status.Problem
	}
	if spec.DeployTimeout == nil {
		return ""
	}
	if slow := measure.TooSlow(measuring(check), spec.DeployTimeout.Duration); slow != "" {
		return "cannot prove a release in time: " + slow
	}
	return ""
}

func measuring(check *v1alpha1.HealthCheck) measure.Spec {
	return measure.NewSpec(*check.Spec.Class, check.Spec.MeasuringSpec, measure.BlocksOf(check.Spec))
}

// toReset returns the checks to reset now. Those that ask what was rolled out come after
// those that say whether it was: Pods of the release before may still answer.
func (p Proofs) toReset() []int {
	resets := p.indices(Unreset)
	if !slices.ContainsFunc(p, Proof.showsNoRollout) {
		return resets
	}
	return slices.DeleteFunc(resets, func(i int) bool { return asksWhatRuns(p[i].Check) })
}

// showsNoRollout reports whether the check should say that the release was rolled out, and
// does not.
func (p Proof) showsNoRollout() bool {
	shows := p.Check.IsClass(v1alpha1.HealthCheckClassKustomization) || p.Check.IsClass(v1alpha1.HealthCheckClassObject) && p.Check.IsMeasured()
	return shows && p.State != Proven
}

// asksWhatRuns reports whether the check asks the running application.
func asksWhatRuns(check *v1alpha1.HealthCheck) bool {
	return check.IsMeasured() && !check.IsClass(v1alpha1.HealthCheckClassObject)
}

// isAboutAnother reports whether the writer of the check says that its status is about
// another release. Most writers do not say what it is about.
func isAboutAnother(said *v1alpha1.MeasuredRelease, release *v1alpha1.VersionInfo) bool {
	if said == nil {
		return false
	}
	digest := release.Digest
	return said.Tag != "" && said.Tag != release.Tag || said.Digest != "" && digest != nil && *digest != "" && said.Digest != *digest
}

// lastValue returns what a check measured last, after its name; empty if it has measured
// nothing.
func lastValue(check *v1alpha1.HealthCheck) string {
	if !check.IsMeasured() || len(check.Status.Measurements) == 0 || check.Status.Measurements[0].Value == "" {
		return ""
	}
	return check.Name + " " + check.Status.Measurements[0].Value
}

// lastValues returns what the checks measured last.
func lastValues(checks []v1alpha1.HealthCheck) []string {
	var values []string
	for i := range checks {
		if value := lastValue(&checks[i]); value != "" {
			values = append(values, value)
		}
	}
	return values
}

// Awaits reports whether the running promotion of a Rollout depends on what the check
// reports from now on: the check was reset for it.
func Awaits(rollout *v1alpha1.Rollout, check *v1alpha1.HealthCheck) bool {
	mark, ok := runningMark(rollout, check)
	return ok && !mark.begun
}

// Resets reports whether the reset of the check for the running promotion of a Rollout has
// begun, and is not complete.
func Resets(rollout *v1alpha1.Rollout, check *v1alpha1.HealthCheck) bool {
	mark, ok := runningMark(rollout, check)
	return ok && mark.begun
}

// runningMark returns the mark of a check that is of the running promotion of a Rollout.
func runningMark(rollout *v1alpha1.Rollout, check *v1alpha1.HealthCheck) (mark, bool) {
	entry := rollout.Current()
	if entry == nil || entry.State() != v1alpha1.BakeDeploying && entry.State() != v1alpha1.BakeInProgress {
		return mark{}, false
	}
	m, ok := parseMark(check.Annotations[v1alpha1.ResetAnnotationPrefix+string(rollout.UID)])
	return m, ok && m.promotion == promotionOf(entry)
}

// PromotionID returns a string that identifies a promotion, and its latest retry, among
// those of its Rollout.
func PromotionID(entry *v1alpha1.DeploymentHistoryEntry) string { return promotionOf(entry) }

// ResetBy returns the UIDs of the Rollouts that have reset the check, or have begun to,
// sorted. Some may not exist any more, and some may not select it any more.
func ResetBy(check *v1alpha1.HealthCheck) []types.UID {
	var all []types.UID
	for key, value := range check.Annotations {
		uid, isMark := strings.CutPrefix(key, v1alpha1.ResetAnnotationPrefix)
		if _, ok := parseMark(value); isMark && ok {
			all = append(all, types.UID(uid))
		}
	}
	slices.Sort(all)
	return all
}
