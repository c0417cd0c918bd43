// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// The bake clock counts the time in which everything proves the release healthy. It stands
// still from the moment at which something is first seen not to, and goes on when
// everything does again. So a release that was down during its bake has not baked.

// bakeEnd returns when the bake time is over if everything proves the release healthy from
// now on.
func bakeEnd(now time.Time, rollout *v1alpha1.Rollout, entry *v1alpha1.DeploymentHistoryEntry) time.Time {
	start := entry.PromotedTime()
	if entry.BakeStartTime != nil {
		start = entry.BakeStartTime.Time
	}
	if bake := rollout.Spec.BakeTimeOf(entry); bake != nil {
		start = start.Add(bake.Duration)
	}
	return start.Add(entry.StoodStill(verdict.WholeSecond(now)))
}

// lull is how long the clock may stand still before that is worth a report: to replace a
// pod, or to drain a node, takes less.
const lull = time.Minute

// standStill waits until everything proves the release healthy again.
func standStill(now time.Time, health evidence.Health, targets content.Targets, entry *v1alpha1.DeploymentHistoryEntry, proofs evidence.Proofs) choice {
	c := awaitHealth(health, targets, proofs)
	if targets.AreUnhealthy() {
		c.Message = truncate.Join(targets.Outdated(), "; ")
	}
	since := unprovenSince(entry, now)
	c.Unproven, c.Message = true, fmt.Sprintf("the bake time stands still since %s; %s", verdict.Clock(since), c.Message)
	if due := since.Add(lull); now.Before(due) {
		return c.until(due)
	}
	c.Overdue = true
	return c
}

// unprovenSince returns since when the clock stands still: now, if nothing says it yet.
func unprovenSince(entry *v1alpha1.DeploymentHistoryEntry, now time.Time) time.Time {
	if entry.UnprovenSince != nil {
		return entry.UnprovenSince.Time
	}
	return now
}

// longestGrace is the longest time by which a bake may be late before somebody is told.
const longestGrace = 15 * time.Minute

// late returns an outcome that says since when a promotion is late that still waits, and
// when time alone makes it late. A rollback is only overdue.
func late(now time.Time, rollout *v1alpha1.Rollout, targets content.Targets, o Outcome) (Outcome, time.Time) {
	entry := rollout.Current()
	if o.Action != Wait {
		return o, time.Time{}
	}
	due, grace := overdueSince(rollout, targets), time.Duration(0)
	if !entry.IsRollback() {
		due, grace = dueAt(rollout, entry)
	}
	counts := entry.State() == v1alpha1.BakeInProgress && !o.Unproven && now.Before(bakeEnd(now, rollout, entry))
	switch told := due.Add(grace); {
	case due.IsZero(), !entry.IsRollback() && counts:
		return o, time.Time{}
	case !now.After(told):
		return o, after(told)
	}
	if o.Overdue = true; !entry.IsRollback() {
		o.LateSince = due
	}
	return o, time.Time{}
}

// dueAt returns when a promotion was due, and by how much it may be late: a bake by
// its own length. A promotion that nothing ends is never due.
func dueAt(rollout *v1alpha1.Rollout, entry *v1alpha1.DeploymentHistoryEntry) (due time.Time, grace time.Duration) {
	timeout, bake := rollout.Spec.DeployTimeout, rollout.Spec.BakeTimeOf(entry)
	switch {
	case entry.State() == v1alpha1.BakeDeploying && timeout != nil && entry.BakeStartTime == nil:
		cutoff := entry.Cutoff()
		return cutoff.Add(timeout.Duration), 0
	case entry.State() == v1alpha1.BakeInProgress && entry.BakeStartTime != nil && bake != nil:
		return entry.BakeStartTime.Add(bake.Duration), min(bake.Duration, longestGrace)
	}
	return time.Time{}, 0
}

// recordBakeClock stores since when the clock stands still, and for how long it has.
func recordBakeClock(in Input, o Outcome, history []v1alpha1.DeploymentHistoryEntry) {
	if len(history) == 0 || history[0].State() != v1alpha1.BakeInProgress || o.Action != Wait && o.Action != FinishBake {
		return
	}
	switch entry := &history[0]; {
	case o.Unproven && entry.UnprovenSince == nil:
		entry.UnprovenSince = &metav1.Time{Time: in.Now.Truncate(time.Second)}
	case !o.Unproven && entry.UnprovenSince != nil:
		entry.UnprovenFor = &metav1.Duration{Duration: entry.StoodStill(verdict.WholeSecond(in.Now))}
		entry.UnprovenSince = nil
		if o.Action == Wait {
			entry.BakeStatusMessage = releases.OrNil(truncate.Text(baking(in, entry), verdict.LongestMessage))
		}
	}
}

// baking describes a bake whose clock runs.
func baking(in Input, entry *v1alpha1.DeploymentHistoryEntry) string {
	var bake time.Duration
	if of := in.Rollout.Spec.BakeTimeOf(entry); of != nil {
		bake = of.Duration
	}
	return fmt.Sprintf("%s; baking for %s, until %s%s", proven(in.Health, in.Targets), bake, verdict.Clock(bakeEnd(in.Now, in.Rollout, entry)), pauses(in.Now, entry))
}

// pauses says for how long the clock stood still; empty if it never did.
func pauses(now time.Time, entry *v1alpha1.DeploymentHistoryEntry) string {
	stood := entry.StoodStill(verdict.WholeSecond(now))
	if stood == 0 {
		return ""
	}
	return fmt.Sprintf(" (it stood still for %s, while not everything was healthy)", stood)
}
