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

// judged evaluates the running promotion. While the promotion has no outcome and nothing
// protects it, a newer release can take its place.
func judged(in Input, k known) (choice, bool) {
	b := bakeOf(in, in.Rollout.Current())
	if !b.entry.State().Running() {
		return choice{}, false
	}
	b.proofs = evidence.Prove(b.health.Checks, b.rollout.UID, b.entry)
	if b.rollout.Recovering() {
		b.proofs = b.proofs.Waived()
	}
	var staleAt time.Time
	b.proofs, staleAt = b.proofs.Fresh(b.now)
	c := b.judge()
	if c.Action != Wait {
		return c, true
	}
	c = c.until(staleAt)
	if newer, ok := promotedNext(in, k); ok {
		return newer.until(c.at), true
	}
	return c, true
}

func (b bake) judge() choice {
	if b.entry.State() == v1alpha1.BakeDeploying {
		return b.judgeDeploying()
	}
	return b.judgeBaking()
}

// judgeDeploying evaluates a promotion that is recorded, but not yet applied by every
// target and proven healthy. The proof counts before the deadline does: if the controller
// was away until after the deadline, it must not fail a release that is applied and
// healthy.
func (b bake) judgeDeploying() choice {
	deadline, applied := b.deadline(), b.targets.AreApplied()
	var c choice
	switch {
	case applied && b.proofs.Has(evidence.Disproven):
		return b.failByHealth()
	case applied && b.health.Proven(b.proofs):
		return b.start()
	case b.gaveUp():
		return b.failByTargets()
	case b.missed(deadline):
		return b.failByDeadline()
	case !applied:
		c = wait(v1alpha1.TargetsPendingReason, "waiting for Flux to apply "+b.entry.Version.Tag)
	default:
		c = b.sayOverdue(b.awaitHealth())
	}
	if !b.now.After(deadline) {
		c = c.until(after(deadline))
	}
	return c
}

// judgeBaking evaluates a promotion that is applied and healthy, and whose bake clock
// runs. The bake succeeds only at a moment at which everything is applied and healthy.
func (b bake) judgeBaking() choice {
	b, lostAt := b.withLosses()
	targetsLostAt, end := b.targetsLostAt(), bakeEnd(b.now, b.rollout, b.entry)
	switch {
	case b.proofs.Has(evidence.Disproven):
		return b.failByHealth()
	case !targetsLostAt.IsZero() && !b.now.Before(targetsLostAt):
		return b.failByTargets()
	case !b.health.Proven(b.proofs) || b.targets.AreUnhealthy():
		return b.standStill().until(lostAt, targetsLostAt)
	case b.now.Before(end):
		return wait(v1alpha1.ProgressingReason, "baking until "+verdict.Clock(end)).until(end)
	case !b.targets.AreApplied():
		c := wait(v1alpha1.TargetsPendingReason, "the bake time is over; "+truncate.Join(b.targets.Outdated(), "; "))
		c.Overdue = true
		return c
	}
	return b.end()
}

// end ends a bake that was healthy for its time. A promotion that cannot fail succeeds,
// whatever was measured in between.
func (b bake) end() choice {
	if bad := evidence.TooManyBad(b.health.Checks); len(bad) > 0 && !b.rollout.Recovering() {
		return fail(v1alpha1.CauseHealthCheckFailed, bad, describe(bad))
	}
	return b.finish()
}

// awaitHealth waits for HealthChecks, and requests a reset of those that have not been
// reset for this promotion yet.
func (b bake) awaitHealth() choice {
	c := wait(v1alpha1.ProgressingReason, "waiting for "+evidence.NamesOf(b.proofs.Checks(evidence.Unreset, evidence.Undecided)))
	switch refused := b.health.Refused(b.proofs); {
	case b.health.Problem != nil:
		c = wait(b.health.Problem.Reason, b.health.Problem.Message)
	case len(refused) > 0:
		c = wait(v1alpha1.ProgressingReason, b.targets.Evidence()+"; waiting for "+truncate.Join(refused, "; "))
		c.Overdue = true
	}
	c.resets = b.proofs.ToReset()
	return c
}

// Patience is how long a HealthCheck may take to report before the status shows that the
// promotion waits for it. A prompt HealthCheck is not worth a status write.
const Patience = 10 * time.Second

// sayOverdue marks the wait for HealthChecks as overdue if they were reset a while ago, or
// if the deadline has passed. Otherwise it waits for when that is.
func (b bake) sayOverdue(c choice) choice {
	var since time.Time
	for _, i := range b.proofs.Indices(evidence.Undecided) {
		if reset := changedAt(b.proofs[i].Check, b.entry.PromotedTime(), b.now); reset.After(since) {
			since = reset
		}
	}
	timeout, due := timeoutOf(b.rollout, b.entry), since.Add(Patience)
	switch missed := !timeout.IsZero() && b.now.After(timeout); {
	case !missed && since.IsZero():
		return c
	case !missed && b.now.Before(due):
		return c.until(due)
	}
	c.Message, c.Overdue = b.targets.Evidence()+"; "+c.Message, true // appliedTime is stored from here on
	return c
}

// lull is how long the clock may stand still before that is worth a report: to replace a
// pod, or to drain a node, takes less.
const lull = time.Minute

// standStill waits until everything proves the release healthy again.
func (b bake) standStill() choice {
	c := b.awaitHealth()
	if b.targets.AreUnhealthy() {
		c.Message = truncate.Join(b.targets.Outdated(), "; ")
	}
	since := unprovenSince(b.entry, b.now)
	c.Unproven, c.Message = true, fmt.Sprintf("the bake time stands still since %s; %s", verdict.Clock(since), c.Message)
	if due := since.Add(lull); b.now.Before(due) {
		return c.until(due)
	}
	c.Overdue = true
	return c
}

// start starts the bake clock; without a bake time the promotion has succeeded.
func (b bake) start() choice {
	if b.rollout.Spec.BakeTimeOf(b.entry) == nil {
		return b.finish()
	}
	if b.entry.BakeStartTime == nil { // otherwise a user let a stopped bake continue
		begun := *b.entry
		begun.BakeStartTime = &metav1.Time{Time: verdict.WholeSecond(b.now)}
		b.entry = &begun
	}
	return choice{Outcome: Outcome{Action: StartBake, Reason: v1alpha1.BakeTimeStartedReason, Message: b.remaining()}, at: bakeEnd(b.now, b.rollout, b.entry)}
}

func (b bake) finish() choice {
	o := Outcome{Action: FinishBake, Reason: v1alpha1.DeploymentSucceededReason, Message: b.proven()}
	if bake := b.rollout.Spec.BakeTimeOf(b.entry); bake != nil {
		o.Reason = v1alpha1.BakeTimePassedReason
		o.Message += fmt.Sprintf(" for the bake time of %s%s", bake.Duration, pauses(b.now, b.entry))
	}
	return choice{Outcome: o}
}

// deadline returns when a deploying entry has failed; zero means never. If nobody had
// reset the HealthChecks by then because the controller was away, they get the same time
// again, from the moment at which the targets are seen applied.
func (b bake) deadline() time.Time {
	deadline := timeoutOf(b.rollout, b.entry)
	if deadline.IsZero() || !b.now.After(deadline) || !b.targets.AreApplied() {
		return deadline
	}
	since := b.now
	if b.entry.AppliedTime != nil || !b.proofs.Has(evidence.Unreset) {
		since = timeOf(b.entry.AppliedTime)
	}
	if since.Before(deadline.Truncate(time.Second)) {
		return deadline
	}
	return since.Add(b.rollout.Spec.DeployTimeout.Duration)
}

// remaining describes a bake whose clock runs.
func (b bake) remaining() string {
	var bake time.Duration
	if of := b.rollout.Spec.BakeTimeOf(b.entry); of != nil {
		bake = of.Duration
	}
	return fmt.Sprintf("%s; baking for %s, until %s%s", b.proven(), bake, verdict.Clock(bakeEnd(b.now, b.rollout, b.entry)), pauses(b.now, b.entry))
}

// proven describes the evidence.
func (b bake) proven() string {
	var shown []string
	if len(b.targets.All) > 0 {
		shown = append(shown, b.targets.Evidence())
	}
	if len(b.health.Checks) > 0 {
		checks := verdict.Count(len(b.health.Checks), "HealthCheck")
		if values := evidence.LastValues(b.health.Checks); len(values) > 0 {
			checks += ": " + truncate.List(values)
		}
		shown = append(shown, fmt.Sprintf("healthy (%s)", checks))
	}
	if len(shown) == 0 {
		return "nothing to deploy"
	}
	return strings.Join(shown, " and ")
}
