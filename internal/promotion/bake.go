// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Protected reports whether a promotion must prove more than that it is applied. Then the
// next promotion waits for its outcome.
func Protected(spec *v1alpha1.RolloutSpec) bool {
	return spec.BakeTime != nil || spec.DeployTimeout != nil || spec.HealthCheckSelector != nil || spec.TargetHealth == v1alpha1.TargetHealthRequired
}

// judged evaluates the running promotion. While the promotion has no outcome and nothing
// protects it, a newer release can take its place.
func judged(in Input, k known) (choice, bool) {
	entry := in.Rollout.Current()
	if !entry.State().Running() {
		return choice{}, false
	}
	proofs := evidence.Prove(in.Health.Checks, in.Rollout.UID, entry)
	if in.Rollout.Recovering() {
		proofs = proofs.Waived()
	}
	proofs, staleAt := proofs.Fresh(in.Now)
	judge := judgeBaking
	if entry.State() == v1alpha1.BakeDeploying {
		judge = judgeDeploying
	}
	c := judge(in, entry, proofs)
	if c.Action != Wait {
		return c, true
	}
	c = c.until(staleAt)
	if newer, ok := promotedNext(in, k); ok {
		return newer.until(c.at), true
	}
	return c, true
}

// judgeDeploying evaluates a promotion that is recorded, but not yet applied by every
// target and proven healthy. The proof counts before the deadline does: if the controller
// was away until after the deadline, it must not fail a release that is applied and
// healthy.
func judgeDeploying(in Input, entry *v1alpha1.DeploymentHistoryEntry, proofs evidence.Proofs) choice {
	deadline, applied := deadlineOf(in.Now, in.Rollout, in.Targets, entry, proofs), in.Targets.AreApplied()
	var c choice
	switch {
	case applied && proofs.Has(evidence.Disproven):
		return failByHealth(in, proofs)
	case applied && in.Health.Proven(proofs):
		return startBake(in, entry)
	case fluxGaveUp(in.Rollout, in.Targets):
		return failByTargets(in, proofs)
	case missed(in.Now, in.Health, in.Targets, deadline, proofs):
		return failByDeadline(in, proofs)
	case !applied:
		c = wait(v1alpha1.TargetsPendingReason, "waiting for Flux to apply "+entry.Version.Tag)
	default:
		c = sayOverdue(in.Now, in.Rollout, in.Targets, entry, proofs, awaitHealth(in.Health, in.Targets, proofs))
	}
	if !in.Now.After(deadline) {
		c = c.until(after(deadline))
	}
	return c
}

// after returns one nanosecond after a deadline: at the deadline itself there is still time.
func after(deadline time.Time) time.Time {
	if deadline.IsZero() {
		return deadline
	}
	return deadline.Add(time.Nanosecond)
}

// judgeBaking evaluates a promotion that is applied and healthy, and whose bake clock
// runs. The bake succeeds only at a moment at which everything is applied and healthy.
func judgeBaking(in Input, entry *v1alpha1.DeploymentHistoryEntry, proofs evidence.Proofs) choice {
	proofs, lostAt := withLosses(in.Now, in.Rollout, entry, proofs)
	targetsLostAt, end := targetsLostAt(in.Now, in.Rollout, in.Targets, entry), bakeEnd(in.Now, in.Rollout, entry)
	switch {
	case proofs.Has(evidence.Disproven):
		return failByHealth(in, proofs)
	case !targetsLostAt.IsZero() && !in.Now.Before(targetsLostAt):
		return failByTargets(in, proofs)
	case !in.Health.Proven(proofs) || in.Targets.AreUnhealthy():
		return standStill(in.Now, in.Health, in.Targets, entry, proofs).until(lostAt, targetsLostAt)
	case in.Now.Before(end):
		return wait(v1alpha1.ProgressingReason, "baking until "+verdict.Clock(end)).until(end)
	case !in.Targets.AreApplied():
		c := wait(v1alpha1.TargetsPendingReason, "the bake time is over; "+truncate.Join(in.Targets.Outdated(), "; "))
		c.Overdue = true
		return c
	}
	return endBake(in)
}

// endBake ends a bake that was healthy for its time. A promotion that cannot fail succeeds,
// whatever was measured in between.
func endBake(in Input) choice {
	if bad := evidence.TooManyBad(in.Health.Checks); len(bad) > 0 && !in.Rollout.Recovering() {
		return fail(v1alpha1.CauseHealthCheckFailed, bad, describe(bad))
	}
	return finish(in)
}

// awaitHealth waits for HealthChecks, and requests a reset of those that have not been
// reset for this promotion yet.
func awaitHealth(health evidence.Health, targets content.Targets, proofs evidence.Proofs) choice {
	c := wait(v1alpha1.ProgressingReason, "waiting for "+evidence.NamesOf(proofs.Checks(evidence.Unreset, evidence.Undecided)))
	switch refused := health.Refused(proofs); {
	case health.Problem != nil:
		c = wait(health.Problem.Reason, health.Problem.Message)
	case len(refused) > 0:
		c = wait(v1alpha1.ProgressingReason, targets.Evidence()+"; waiting for "+truncate.Join(refused, "; "))
		c.Overdue = true
	}
	c.resets = proofs.ToReset()
	return c
}

// Patience is how long a HealthCheck may take to report before the status shows that the
// promotion waits for it. A prompt HealthCheck is not worth a status write.
const Patience = 10 * time.Second

// sayOverdue marks the wait for HealthChecks as overdue if they were reset a while ago, or
// if the deadline has passed. Otherwise it waits for when that is.
func sayOverdue(now time.Time, rollout *v1alpha1.Rollout, targets content.Targets, entry *v1alpha1.DeploymentHistoryEntry, proofs evidence.Proofs, c choice) choice {
	var since time.Time
	for _, i := range proofs.Indices(evidence.Undecided) {
		if reset := changedAt(proofs[i].Check, entry.PromotedTime(), now); reset.After(since) {
			since = reset
		}
	}
	timeout, due := timeoutOf(rollout, entry), since.Add(Patience)
	switch missed := !timeout.IsZero() && now.After(timeout); {
	case !missed && since.IsZero():
		return c
	case !missed && now.Before(due):
		return c.until(due)
	}
	c.Message, c.Overdue = targets.Evidence()+"; "+c.Message, true // appliedTime is stored from here on
	return c
}

// startBake starts the bake clock; without a bake time the promotion has succeeded.
func startBake(in Input, entry *v1alpha1.DeploymentHistoryEntry) choice {
	bake := in.Rollout.Spec.BakeTimeOf(entry)
	if bake == nil {
		return finish(in)
	}
	begun := *entry
	if begun.BakeStartTime == nil { // otherwise a user let a stopped bake continue
		begun.BakeStartTime = &metav1.Time{Time: verdict.WholeSecond(in.Now)}
	}
	return choice{Outcome: Outcome{Action: StartBake, Reason: v1alpha1.BakeTimeStartedReason, Message: baking(in, &begun)}, at: bakeEnd(in.Now, in.Rollout, &begun)}
}

func finish(in Input) choice {
	bake := in.Rollout.Spec.BakeTimeOf(in.Rollout.Current())
	if bake == nil {
		return choice{Outcome: Outcome{Action: FinishBake, Reason: v1alpha1.DeploymentSucceededReason, Message: proven(in.Health, in.Targets)}}
	}
	text := fmt.Sprintf("%s for the bake time of %s%s", proven(in.Health, in.Targets), bake.Duration, pauses(in.Now, in.Rollout.Current()))
	return choice{Outcome: Outcome{Action: FinishBake, Reason: v1alpha1.BakeTimePassedReason, Message: text}}
}

// deadlineOf returns when a deploying entry has failed; zero means never. If nobody had
// reset the HealthChecks by then because the controller was away, they get the same time
// again, from the moment at which the targets are seen applied.
func deadlineOf(now time.Time, rollout *v1alpha1.Rollout, targets content.Targets, entry *v1alpha1.DeploymentHistoryEntry, proofs evidence.Proofs) time.Time {
	deadline := timeoutOf(rollout, entry)
	if deadline.IsZero() || !now.After(deadline) || !targets.AreApplied() {
		return deadline
	}
	since := now
	if entry.AppliedTime != nil || !proofs.Has(evidence.Unreset) {
		since = timeOf(entry.AppliedTime)
	}
	if since.Before(deadline.Truncate(time.Second)) {
		return deadline
	}
	return since.Add(rollout.Spec.DeployTimeout.Duration)
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
func proven(health evidence.Health, targets content.Targets) string {
	var shown []string
	if len(targets.All) > 0 {
		shown = append(shown, targets.Evidence())
	}
	if len(health.Checks) > 0 {
		checks := verdict.Count(len(health.Checks), "HealthCheck")
		if values := evidence.LastValues(health.Checks); len(values) > 0 {
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
