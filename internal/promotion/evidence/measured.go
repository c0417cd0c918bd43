// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/measure"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Measurable holds automatic promotions while a selected HealthCheck cannot be
// measured as it is: that must be seen before the release that needs it. A HealthCheck
// that is not enforced holds nothing.
func (h Health) Measurable(spec *v1alpha1.RolloutSpec) *verdict.Hold {
	var problems []string
	for i := range h.Checks {
		check := &h.Checks[i]
		if problem := problemOf(check, spec); problem != "" {
			problems = append(problems, "HealthCheck "+check.Namespace+"/"+check.Name+" "+problem)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return &verdict.Hold{Reason: v1alpha1.HealthCheckInvalidReason, Message: truncate.Join(problems, "; ")}
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
	if seldom := tooSeldom(check, spec); seldom != "" {
		return "cannot judge a bake: " + seldom
	}
	if spec.DeployTimeout == nil {
		return ""
	}
	if slow := measure.TooSlow(measure.SpecOf(check), spec.DeployTimeout.Duration); slow != "" {
		return "cannot prove a release in time: " + slow
	}
	return ""
}

// tooSeldom returns why a check is not measured within a bake; empty if it is.
func tooSeldom(check *v1alpha1.HealthCheck, spec *v1alpha1.RolloutSpec) string {
	if spec.BakeTime == nil {
		return ""
	}
	return measure.TooSeldom(measure.SpecOf(check), spec.BakeTime.Duration)
}

// ToReset returns the checks to reset now. Those that ask what was rolled out come after
// those that say whether it was: Pods of the release before may still answer.
func (p Proofs) ToReset() []int {
	resets := p.Indices(Unreset)
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

// LastValues returns what the checks measured last, each after its name.
func LastValues(checks []v1alpha1.HealthCheck) []string {
	var values []string
	for i := range checks {
		if value := measure.LastValue(&checks[i]); value != "" {
			values = append(values, checks[i].Name+" "+value)
		}
	}
	return values
}

// TooManyBad returns the checks of which too many measurements were bad, as failures. Not
// three in a row need to be: an application of which every second answer is an error is not
// healthy.
func TooManyBad(checks []v1alpha1.HealthCheck) []v1alpha1.FailedHealthCheck {
	var all []v1alpha1.FailedHealthCheck
	for i := range checks {
		if why, bad := measure.TooManyBad(&checks[i]); bad {
			all = append(all, v1alpha1.FailedHealthCheck{Name: checks[i].Name, Namespace: checks[i].Namespace, Message: &why})
		}
	}
	return all
}

// Fresh returns the proofs without those that rest on measurements that are too old, because
// nobody has measured for a while, and has not said so yet. It also returns when time alone
// makes another one too old; zero means never.
func (p Proofs) Fresh(now time.Time) (Proofs, time.Time) {
	var next time.Time
	for _, i := range p.Indices(Proven) {
		if !p[i].Check.IsMeasured() {
			continue
		}
		switch stale := measure.StaleAt(p[i].Check); {
		case stale.IsZero():
		case now.After(stale):
			p[i].State = Undecided
		default:
			next = verdict.Earlier(next, stale.Add(time.Nanosecond))
		}
	}
	return p, next
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
	return m, ok && m.promotion == PromotionID(entry)
}

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

// Waived returns the proofs of a promotion that cannot fail: an error only makes it
// wait until the check is Healthy again.
func (p Proofs) Waived() Proofs {
	for i := range p {
		if p[i].State != Disproven {
			continue
		}
		p[i].State = Undecided
		if p[i].Check.Status.Status == v1alpha1.HealthStatusHealthy {
			p[i].State = Proven
		}
	}
	return p
}
