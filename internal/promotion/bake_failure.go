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

func fail(cause v1alpha1.FailureCause, failed []v1alpha1.FailedHealthCheck, message string) choice {
	return choice{Outcome: Outcome{Action: FailBake, Reason: v1alpha1.BakeTimeFailedReason, Cause: cause, Failed: failed, Message: message}}
}

func failByHealth(in Input, proofs evidence.Proofs) choice {
	failed := proofs.Failed(evidence.Disproven)
	return fail(in.causeOf(proofs.Checks(evidence.Disproven)), failed, describe(failed))
}

// causeOf returns the cause of a failure by HealthChecks. It is a verdict about the release
// only if something of this release has run, and is not what several Rollouts deploy
// together.
func (in Input) causeOf(checks []v1alpha1.HealthCheck) v1alpha1.FailureCause {
	condemns := func(check v1alpha1.HealthCheck) bool {
		return check.Status.Reason != v1alpha1.HealthNotStarted && !in.Health.Shared[check.Namespace+"/"+check.Name]
	}
	if slices.ContainsFunc(checks, condemns) {
		return v1alpha1.CauseHealthCheckFailed
	}
	return v1alpha1.CauseDeployTimeout
}

// atDeadline begins the message of a promotion that failed at its deadline.
const atDeadline = "not applied and healthy within"

// failByDeadline reports everything that was still missing: targets that Flux has not
// applied, and checks that have not proven the release healthy.
func failByDeadline(in Input, proofs evidence.Proofs) choice {
	failed := proofs.Failed(evidence.Unreset, evidence.Undecided, evidence.Disproven)
	missing := in.Health.Refused(proofs)
	if outdated := in.Targets.Outdated(); len(outdated) > 0 {
		missing = append(missing, truncate.Join(outdated, "; "))
	}
	if len(failed) > 0 {
		missing = append(missing, describe(failed))
	}
	if in.Health.Problem != nil {
		missing = append(missing, in.Health.Problem.Message)
	}
	return fail(causeAtDeadline(in, proofs), failed,
		fmt.Sprintf("%s %s: %s", atDeadline, in.Rollout.Spec.DeployTimeout.Duration, strings.Join(missing, "; ")))
}

// fluxGaveUp reports whether a promotion has failed because Flux does not try again.
func fluxGaveUp(rollout *v1alpha1.Rollout, targets content.Targets) bool {
	return targets.GaveUp() && Protected(&rollout.Spec) && !rollout.Recovering()
}

// missed reports whether a deadline, if there is one, has passed for something else than
// traffic.
func missed(now time.Time, health evidence.Health, targets content.Targets, deadline time.Time, proofs evidence.Proofs) bool {
	return !deadline.IsZero() && now.After(deadline) && !onlyLacksTraffic(health, targets, proofs)
}

// onlyLacksTraffic reports whether all that is missing are measured HealthChecks that were
// asked and had no data so far. The deadline is about being applied and rolled out:
// at night, nobody may use the application.
func onlyLacksTraffic(health evidence.Health, targets content.Targets, proofs evidence.Proofs) bool {
	if !targets.AreApplied() || health.Problem != nil || proofs.Has(evidence.Unreset, evidence.Disproven) {
		return false
	}
	return !slices.ContainsFunc(proofs.Checks(evidence.Undecided), func(c v1alpha1.HealthCheck) bool { return !hadNoData(c) })
}

// hadNoData reports whether all measurements of a check had no data.
func hadNoData(check v1alpha1.HealthCheck) bool {
	return check.IsMeasured() && len(check.Status.Measurements) > 0 &&
		!slices.ContainsFunc(check.Status.Measurements, func(m v1alpha1.Measurement) bool { return m.Result != v1alpha1.MeasurementNoData })
}

// causeAtDeadline returns what made a promotion fail at its deadline.
func causeAtDeadline(in Input, proofs evidence.Proofs) v1alpha1.FailureCause {
	switch {
	case proofs.Has(evidence.Disproven):
		return in.causeOf(proofs.Checks(evidence.Disproven))
	case slices.ContainsFunc(in.Targets.All, content.Target.Condemns):
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
func withLosses(now time.Time, rollout *v1alpha1.Rollout, entry *v1alpha1.DeploymentHistoryEntry, proofs evidence.Proofs) (evidence.Proofs, time.Time) {
	var next time.Time
	if rollout.Recovering() {
		return proofs, next
	}
	for _, i := range proofs.Indices(evidence.Undecided) {
		since := lostSince(proofs[i].Check, entry, now)
		due := since.Add(lossAfter(&rollout.Spec))
		switch {
		case since.IsZero():
		case now.Before(due):
			next = verdict.Earlier(next, due)
		default:
			proofs[i].State, proofs[i].LostSince = evidence.Disproven, since
		}
	}
	return proofs, next
}

// lostSince returns since when what a check of the class kustomization looks at is known not
// to be healthy any more. Checks of other classes have their own rules, and zero is returned.
func lostSince(check *v1alpha1.HealthCheck, entry *v1alpha1.DeploymentHistoryEntry, now time.Time) time.Time {
	known := check.Status.Status == v1alpha1.HealthStatusPending && check.Status.Reason != v1alpha1.HealthNotObserved
	if !check.IsClass(v1alpha1.HealthCheckClassKustomization) || !known {
		return time.Time{}
	}
	since := timeOf(entry.BakeStartTime)
	if changed := changedAt(check, unprovenSince(entry, now), now); changed.After(since) {
		since = changed
	}
	return since
}

// targetsLostAt returns when targets that are not healthy any more make the bake fail; zero
// if they do not.
func targetsLostAt(now time.Time, rollout *v1alpha1.Rollout, targets content.Targets, entry *v1alpha1.DeploymentHistoryEntry) time.Time {
	if !targets.AreUnhealthy() || rollout.Recovering() {
		return time.Time{}
	}
	return unprovenSince(entry, now).Add(lossAfter(&rollout.Spec))
}

// failByTargets reports the targets whose objects have become unhealthy.
func failByTargets(in Input, proofs evidence.Proofs) choice {
	return fail(causeAtDeadline(in, proofs), nil, truncate.Join(in.Targets.Outdated(), "; "))
}

// recovery explains why the promotion of this decision cannot fail; nil if it can. The
// release that it replaces is already broken. If this way out were reported as a failure,
// that would only block the next one.
func recovery(in Input, o Outcome) *verdict.Note {
	previous := in.Rollout.Current()
	why := v1alpha1.Recovery("")
	switch {
	case o.Action == Adopt:
	case previous.State() == v1alpha1.BakeFailed, previous.IsRollback() && (isOverdue(in.Now, in.Rollout, in.Targets) || o.Reason == v1alpha1.TagMovedReason):
		why = v1alpha1.RecoveryFromFailure
	case o.Manual && len(evidence.Unhealthy(in.Health.Checks)) > 0:
		why = v1alpha1.RecoveryWhileUnhealthy
	}
	if why == "" {
		return nil
	}
	return &verdict.Note{Reason: string(why), Message: recoveryMessage(why, o.Release.Tag, previous)}
}
