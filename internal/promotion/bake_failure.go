// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

func (b bake) failByHealth() choice {
	failed := b.proofs.Failed(evidence.Disproven)
	return fail(b.causeByHealth(), failed, describe(failed))
}

// causeByHealth returns the cause of a failure by HealthChecks. It is a verdict about the
// release only if something of this release has run, and is not what several Rollouts deploy
// together.
func (b bake) causeByHealth() v1alpha1.FailureCause {
	condemns := func(check v1alpha1.HealthCheck) bool {
		return check.Status.Reason != v1alpha1.HealthNotStarted && !b.health.Shared[check.Namespace+"/"+check.Name]
	}
	if slices.ContainsFunc(b.proofs.Checks(evidence.Disproven), condemns) {
		return v1alpha1.CauseHealthCheckFailed
	}
	return v1alpha1.CauseDeployTimeout
}

// failByDeadline reports everything that was still missing: targets that Flux has not
// applied, and checks that have not proven the release healthy.
func (b bake) failByDeadline() choice {
	failed := b.proofs.Failed(evidence.Unreset, evidence.Undecided, evidence.Disproven)
	missing := b.health.Refused(b.proofs)
	if outdated := b.targets.Outdated(); len(outdated) > 0 {
		missing = append(missing, truncate.Join(outdated, "; "))
	}
	if len(failed) > 0 {
		missing = append(missing, describe(failed))
	}
	if b.health.Problem != nil {
		missing = append(missing, b.health.Problem.Message)
	}
	return fail(b.cause(), failed, fmt.Sprintf("%s %s: %s", atDeadline, b.rollout.Spec.DeployTimeout.Duration, strings.Join(missing, "; ")))
}

// gaveUp reports whether a promotion has failed because Flux does not try again.
func (b bake) gaveUp() bool {
	return b.targets.GaveUp() && Protected(&b.rollout.Spec) && !b.rollout.Recovering()
}

// missed reports whether a deadline, if there is one, has passed for something else than
// traffic.
func (b bake) missed(deadline time.Time) bool {
	return !deadline.IsZero() && b.now.After(deadline) && !b.onlyLacksTraffic()
}

// onlyLacksTraffic reports whether all that is missing are measured HealthChecks that were
// asked and had no data so far. The deadline is about being applied and rolled out:
// at night, nobody may use the application.
func (b bake) onlyLacksTraffic() bool {
	if !b.targets.AreApplied() || b.health.Problem != nil || b.proofs.Has(evidence.Unreset, evidence.Disproven) {
		return false
	}
	return !slices.ContainsFunc(b.proofs.Checks(evidence.Undecided), func(c v1alpha1.HealthCheck) bool { return !hadNoData(c) })
}

// hadNoData reports whether all measurements of a check had no data.
func hadNoData(check v1alpha1.HealthCheck) bool {
	return check.IsMeasured() && len(check.Status.Measurements) > 0 &&
		!slices.ContainsFunc(check.Status.Measurements, func(m v1alpha1.Measurement) bool { return m.Result != v1alpha1.MeasurementNoData })
}

// cause returns what made a promotion fail by its targets or at its deadline.
func (b bake) cause() v1alpha1.FailureCause {
	switch {
	case b.proofs.Has(evidence.Disproven):
		return b.causeByHealth()
	case slices.ContainsFunc(b.targets.All, content.Target.Condemns):
		return v1alpha1.CauseTargetUnhealthy
	}
	return v1alpha1.CauseDeployTimeout
}

// defaultLossAfter is how long what was healthy may be missing without spec.deployTimeout.
const defaultLossAfter = 10 * time.Minute

// lossAfter returns for how long a release that bakes may be not healthy before it has
// failed. To drain a node, or to start more pods, takes less.
func lossAfter(spec *v1alpha1.RolloutSpec) time.Duration {
	if spec.DeployTimeout != nil {
		return spec.DeployTimeout.Duration
	}
	return defaultLossAfter
}

// withLosses returns the proofs of a release that bakes. What was rolled out as this
// release, and has not been healthy for too long, is Disproven: Kubernetes itself never
// says that of a workload that was rolled out once. It also returns when time alone makes
// another one Disproven; zero means never.
func (b bake) withLosses() (bake, time.Time) {
	var next time.Time
	if b.rollout.Recovering() {
		return b, next
	}
	for _, i := range b.proofs.Indices(evidence.Undecided) {
		since := b.lostSince(b.proofs[i].Check)
		due := since.Add(lossAfter(&b.rollout.Spec))
		switch {
		case since.IsZero():
		case b.now.Before(due):
			next = verdict.Earlier(next, due)
		default:
			b.proofs[i].State, b.proofs[i].LostSince = evidence.Disproven, since
		}
	}
	return b, next
}

// lostSince returns since when what a check of the class kustomization looks at is known not
// to be healthy any more. Checks of other classes have their own rules, and zero is returned.
func (b bake) lostSince(check *v1alpha1.HealthCheck) time.Time {
	known := check.Status.Status == v1alpha1.HealthStatusPending && check.Status.Reason != v1alpha1.HealthNotObserved
	if !check.IsClass(v1alpha1.HealthCheckClassKustomization) || !known {
		return time.Time{}
	}
	since := timeOf(b.entry.BakeStartTime)
	if changed := changedAt(check, unprovenSince(b.entry, b.now), b.now); changed.After(since) {
		since = changed
	}
	return since
}

// targetsLostAt returns when targets that are not healthy any more make the bake fail; zero
// if they do not.
func (b bake) targetsLostAt() time.Time {
	if !b.targets.AreUnhealthy() || b.rollout.Recovering() {
		return time.Time{}
	}
	return unprovenSince(b.entry, b.now).Add(lossAfter(&b.rollout.Spec))
}

// failByTargets reports the targets whose objects have become unhealthy.
func (b bake) failByTargets() choice {
	return fail(b.cause(), nil, truncate.Join(b.targets.Outdated(), "; "))
}

// recovery explains why the promotion that follows cannot fail; nil if it can. The
// release that it replaces is already broken. If this way out were reported as a failure,
// that would only block the next one.
func (b bake) recovery(o Outcome) *verdict.Note {
	why := v1alpha1.Recovery("")
	switch {
	case o.Action == Adopt:
	case b.entry.State() == v1alpha1.BakeFailed, b.entry.IsRollback() && (isOverdue(b.now, b.rollout, b.targets) || o.Reason == v1alpha1.TagMovedReason):
		why = v1alpha1.RecoveryFromFailure
	case o.Manual && len(evidence.Unhealthy(b.health.Checks)) > 0:
		why = v1alpha1.RecoveryWhileUnhealthy
	}
	if why == "" {
		return nil
	}
	return &verdict.Note{Reason: string(why), Message: recoveryMessage(why, o.Release.Tag, b.entry)}
}

func describe(failed []v1alpha1.FailedHealthCheck) string {
	all := make([]string, 0, len(failed))
	for _, check := range failed {
		text := fmt.Sprintf("HealthCheck %s/%s", check.Namespace, check.Name)
		if check.Message != nil {
			text += ": " + *check.Message
		}
		all = append(all, text)
	}
	return truncate.Join(all, "; ")
}
