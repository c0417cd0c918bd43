// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// bake is a promotion, and what its outcome depends on.
type bake struct {
	now     time.Time
	rollout *v1alpha1.Rollout
	health  evidence.Health
	targets content.Targets
	entry   *v1alpha1.DeploymentHistoryEntry
	// proofs are what the HealthChecks prove about it.
	proofs evidence.Proofs
}

func bakeOf(in Input, entry *v1alpha1.DeploymentHistoryEntry) bake {
	return bake{now: in.Now, rollout: in.Rollout, health: in.Health, targets: in.Targets, entry: entry}
}

// Protected reports whether a promotion must prove more than that it is applied. Then the
// next promotion waits for its outcome.
func Protected(spec *v1alpha1.RolloutSpec) bool {
	return spec.BakeTime != nil || spec.DeployTimeout != nil || spec.HealthCheckSelector != nil || spec.TargetHealth == v1alpha1.TargetHealthRequired
}

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

// unprovenSince returns since when the clock stands still: now, if nothing says it yet.
func unprovenSince(entry *v1alpha1.DeploymentHistoryEntry, now time.Time) time.Time {
	if entry.UnprovenSince != nil {
		return entry.UnprovenSince.Time
	}
	return now
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

// after returns one nanosecond after a deadline: at the deadline itself there is still time.
func after(deadline time.Time) time.Time {
	if deadline.IsZero() {
		return deadline
	}
	return deadline.Add(time.Nanosecond)
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

// overdueSince returns when a running rollback is overdue; zero if it never is. The bake
// time comes on top once it runs. A bake that begins late ends late, and nothing is wrong
// before that.
func overdueSince(rollout *v1alpha1.Rollout, targets content.Targets) time.Time {
	current, spec := rollout.Current(), &rollout.Spec
	if !spec.RollsBack() || !current.IsRollback() || !current.State().Running() {
		return time.Time{}
	}
	due := current.PromotedTime().Add(spec.RollbackOverdueAfter(targets.LongestWait()))
	if bake := spec.BakeTimeOf(current); bake != nil && current.State() == v1alpha1.BakeInProgress {
		if started := current.BakeStartTime; started != nil && started.After(due) {
			due = started.Time
		}
		due = due.Add(bake.Duration)
	}
	return due
}

// isOverdue reports whether the current promotion is a rollback that is overdue.
func isOverdue(now time.Time, rollout *v1alpha1.Rollout, targets content.Targets) bool {
	due := overdueSince(rollout, targets)
	return !due.IsZero() && now.After(due)
}

// pauses says for how long the clock stood still; empty if it never did.
func pauses(now time.Time, entry *v1alpha1.DeploymentHistoryEntry) string {
	stood := entry.StoodStill(verdict.WholeSecond(now))
	if stood == 0 {
		return ""
	}
	return fmt.Sprintf(" (it stood still for %s, while not everything was healthy)", stood)
}
