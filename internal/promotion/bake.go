// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Protected reports whether a promotion must prove more than that it is applied. Then the
// next promotion waits for its outcome.
func Protected(spec *v1alpha1.RolloutSpec) bool {
	return spec.BakeTime != nil || spec.DeployTimeout != nil || spec.HealthCheckSelector != nil || spec.TargetHealth == v1alpha1.TargetHealthRequired
}

// chooseOutcome evaluates the running promotion. While the promotion has no outcome and
// nothing protects it, a newer release can take its place.
func (d *Decision) chooseOutcome(in Input) {
	entry := in.Rollout.Current()
	proofs := evidence.Prove(in.Health.Checks, in.Rollout.UID, entry)
	if in.Rollout.Recovering() {
		proofs = proofs.Waived()
	}
	proofs, staleAt := proofs.Fresh(in.Now)
	if entry.State() == v1alpha1.BakeDeploying {
		d.judgeDeploying(in, entry, proofs)
	} else {
		d.judgeBaking(in, entry, proofs)
	}
	if d.Action == Wait {
		d.lookAt(staleAt)
		d.chooseCandidate(in)
	}
}

// judgeDeploying evaluates a promotion that is recorded, but not yet applied by every
// target and proven healthy. The proof counts before the deadline does: if the controller
// was away until after the deadline, it must not fail a release that is applied and
// healthy.
func (d *Decision) judgeDeploying(in Input, entry *v1alpha1.DeploymentHistoryEntry, proofs evidence.Proofs) {
	deadline := deadlineOf(in, entry, proofs)
	applied := in.Targets.AreApplied()
	healthy := applied && in.Health.Proven(proofs)
	switch {
	case applied && proofs.Has(evidence.Disproven):
		d.failByHealth(in, proofs)
	case healthy:
		d.startBake(in, entry)
	case in.fluxGaveUp():
		d.failByTargets(in, proofs)
	case in.missed(deadline, proofs):
		d.failByDeadline(in, proofs)
	case !applied:
		d.wait(v1alpha1.TargetsPendingReason, "waiting for Flux to apply "+entry.Version.Tag)
	default:
		d.awaitHealth(in, proofs)
		d.lookAt(d.overdueAt(in, entry, proofs))
	}
	d.awaitDeadline(in, deadline)
}

// awaitDeadline schedules a recheck after a deadline that has not passed.
func (d *Decision) awaitDeadline(in Input, deadline time.Time) {
	if d.Action == Wait && !in.Now.After(deadline) {
		d.lookAfter(deadline)
	}
}

// lookAfter schedules a recheck one nanosecond after a deadline: at the deadline itself
// there is still time.
func (d *Decision) lookAfter(deadline time.Time) {
	if !deadline.IsZero() {
		d.lookAt(deadline.Add(time.Nanosecond))
	}
}

// judgeBaking evaluates a promotion that is applied and healthy, and whose bake clock
// runs. The bake succeeds only at a moment at which everything is applied and healthy.
func (d *Decision) judgeBaking(in Input, entry *v1alpha1.DeploymentHistoryEntry, proofs evidence.Proofs) {
	proofs, lostAt := in.withLosses(entry, proofs)
	targetsLostAt, end := in.targetsLostAt(entry), bakeEnd(in, entry)
	switch {
	case proofs.Has(evidence.Disproven):
		d.failByHealth(in, proofs)
	case !targetsLostAt.IsZero() && !in.Now.Before(targetsLostAt):
		d.failByTargets(in, proofs)
	case !in.Health.Proven(proofs) || in.Targets.AreUnhealthy():
		d.standStill(in, entry, proofs)
		d.lookAt(lostAt)
		d.lookAt(targetsLostAt)
	case in.Now.Before(end):
		d.wait(v1alpha1.ProgressingReason, "baking until "+verdict.Clock(end))
		d.lookAt(end)
	case !in.Targets.AreApplied():
		d.wait(v1alpha1.TargetsPendingReason, "the bake time is over; "+truncate.Join(in.Targets.Outdated(), "; "))
		d.Overdue = true
	default:
		d.endBake(in)
	}
}

// endBake ends a bake that was healthy for its time. A promotion that cannot fail succeeds,
// whatever was measured in between.
func (d *Decision) endBake(in Input) {
	if bad := evidence.TooManyBad(in.Health.Checks); len(bad) > 0 && !in.Rollout.Recovering() {
		d.fail(v1alpha1.CauseHealthCheckFailed, bad, describe(bad))
		return
	}
	d.finish(in)
}

func (d *Decision) wait(reason, message string) {
	d.Action, d.Reason, d.Message = Wait, reason, message
}

// awaitHealth waits for HealthChecks, and requests a reset of those that have not been
// reset for this promotion yet.
func (d *Decision) awaitHealth(in Input, proofs evidence.Proofs) {
	d.Resets = proofs.ToReset()
	switch {
	case in.Health.Problem != nil:
		d.wait(in.Health.Problem.Reason, in.Health.Problem.Message)
	case len(in.Health.Refused(proofs)) > 0:
		d.wait(v1alpha1.ProgressingReason, in.Targets.Evidence()+"; waiting for "+truncate.Join(in.Health.Refused(proofs), "; "))
		d.Overdue = true
	default:
		d.wait(v1alpha1.ProgressingReason, "waiting for "+evidence.NamesOf(proofs.Checks(evidence.Unreset, evidence.Undecided)))
	}
}

// Patience is how long a HealthCheck may take to report before the status shows that the
// promotion waits for it. A prompt HealthCheck is not worth a status write.
const Patience = 10 * time.Second

// overdueAt marks the wait for HealthChecks as overdue if they were reset a while ago, or
// if the deadline has passed. Otherwise it returns when the wait becomes overdue.
func (d *Decision) overdueAt(in Input, entry *v1alpha1.DeploymentHistoryEntry, proofs evidence.Proofs) time.Time {
	if due := timeoutOf(in.Rollout, entry); !due.IsZero() && in.Now.After(due) {
		d.Message, d.Overdue = in.Targets.Evidence()+"; "+d.Message, true // appliedTime is stored from here on
		return time.Time{}
	}
	var since time.Time
	for _, i := range proofs.Indices(evidence.Undecided) {
		if reset := changedAt(proofs[i].Check, entry.PromotedTime(), in.Now); reset.After(since) {
			since = reset
		}
	}
	if since.IsZero() {
		return since
	}
	if due := since.Add(Patience); in.Now.Before(due) {
		return due
	}
	d.Message, d.Overdue = in.Targets.Evidence()+"; "+d.Message, true
	return time.Time{}
}

// startBake starts the bake clock; without a bake time the promotion has succeeded.
func (d *Decision) startBake(in Input, entry *v1alpha1.DeploymentHistoryEntry) {
	bake := in.Rollout.Spec.BakeTimeOf(entry)
	if bake == nil {
		d.finish(in)
		return
	}
	begun := *entry
	if begun.BakeStartTime == nil { // otherwise a user let a stopped bake continue
		begun.BakeStartTime = &metav1.Time{Time: verdict.WholeSecond(in.Now)}
	}
	d.Action, d.Reason, d.Message = StartBake, v1alpha1.BakeTimeStartedReason, baking(in, &begun)
	d.lookAt(bakeEnd(in, &begun))
}

func (d *Decision) finish(in Input) {
	d.Action, d.Reason = FinishBake, v1alpha1.DeploymentSucceededReason
	d.Message = proven(in)
	if bake := in.Rollout.Spec.BakeTimeOf(in.Rollout.Current()); bake != nil {
		d.Reason = v1alpha1.BakeTimePassedReason
		d.Message = fmt.Sprintf("%s for the bake time of %s%s", proven(in), bake.Duration, pauses(in, in.Rollout.Current()))
	}
}

// deadlineOf returns when a deploying entry has failed; zero means never. If nobody had
// reset the HealthChecks by then because the controller was away, they get the same time
// again, from the moment at which the targets are seen applied.
func deadlineOf(in Input, entry *v1alpha1.DeploymentHistoryEntry, proofs evidence.Proofs) time.Time {
	deadline := timeoutOf(in.Rollout, entry)
	if deadline.IsZero() || !in.Now.After(deadline) || !in.Targets.AreApplied() {
		return deadline
	}
	since := in.Now
	if entry.AppliedTime != nil || !proofs.Has(evidence.Unreset) {
		since = timeOf(entry.AppliedTime)
	}
	if since.Before(deadline.Truncate(time.Second)) {
		return deadline
	}
	return since.Add(in.Rollout.Spec.DeployTimeout.Duration)
}

// timeOf returns a time of the API; zero if it is absent.
func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// timeoutOf returns when spec.deployTimeout is over; zero means never. A bake that had
// already started, and that a user let continue, has met its deadline. A promotion that
// cannot fail has no deadline.
func timeoutOf(rollout *v1alpha1.Rollout, entry *v1alpha1.DeploymentHistoryEntry) time.Time {
	if rollout.Spec.DeployTimeout == nil || entry.BakeStartTime != nil || rollout.Recovering() {
		return time.Time{}
	}
	cutoff := entry.Cutoff()
	return cutoff.Add(rollout.Spec.DeployTimeout.Duration)
}

// proven describes the evidence.
func proven(in Input) string {
	var shown []string
	if len(in.Targets.All) > 0 {
		shown = append(shown, in.Targets.Evidence())
	}
	if len(in.Health.Checks) > 0 {
		checks := verdict.Count(len(in.Health.Checks), "HealthCheck")
		if values := evidence.LastValues(in.Health.Checks); len(values) > 0 {
			checks += ": " + truncate.List(values)
		}
		shown = append(shown, fmt.Sprintf("healthy (%s)", checks))
	}
	if len(shown) == 0 {
		return "nothing to deploy"
	}
	return strings.Join(shown, " and ")
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
