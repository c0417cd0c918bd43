// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// There is no loop of failures and rollbacks. A rollback answers only a failed promotion
// that was no rollback, and only once: a rollback never fails. An automatic promotion goes
// only to a release whose newest entry here has not failed. So each round needs a release
// that was not tried since a user last chose it, and withinRollbackLimit ends the rounds
// with ever newer releases.

// rollbackChecks is the complete policy of rollbacks, in the order in which the reasons
// are reported. Everything else, such as gates and Environments, is not asked: to go back
// lowers the risk.
var rollbackChecks = []func(attempt) *verdict.Hold{
	failureIsAnswered, somethingIsProven, notBelowFloor, nothingForwardOnly,
	versionLeftToTheController, delayIsOver, schedulesLetGoBack,
}

// rolledBack goes back to the release that succeeded last, if the current one has
// failed. A release that a user lets go past the failure is promoted instead.
func rolledBack(in Input, k known) (choice, bool) {
	if !isToBeAnswered(in.Rollout) || slices.ContainsFunc(k.candidates, Verdict.Eligible) {
		return choice{}, false
	}
	a := tryBack(in, k.ledger)
	if hold := a.hold(); hold != nil {
		return choice{}.until(hold.Until, a.until), false
	}
	c := promote(in.Rollout, a.to.Version, v1alpha1.GroundsRollback)
	c.Back, c.Reason, c.Message = rollbackOf(a.failed, a.to), v1alpha1.AutomaticRollbackReason, a.message()
	return c, true
}

func tryBack(in Input, ledger []v1alpha1.VersionInfo) attempt {
	a := newAttempt(in, ledger)
	a.awaits = awaited(in, ledger) != nil
	return a
}

// isToBeAnswered reports whether the current promotion has failed, and the Rollout goes
// back by itself.
func isToBeAnswered(rollout *v1alpha1.Rollout) bool {
	current := rollout.Current()
	return rollout.Spec.RollsBack() && current.State() == v1alpha1.BakeFailed && !current.IsRollback()
}

// hold returns the first reason against going back; nil if there is none.
func (a attempt) hold() *verdict.Hold {
	for _, check := range rollbackChecks {
		if hold := check(a); hold != nil {
			return hold
		}
	}
	return nil
}

// longestWhy is how many characters of the cause of a failure the message of a rollback
// contains.
const longestWhy = 512

func (a attempt) message() string {
	text := rolledBackFrom + nameOf(a.failed)
	if why := a.failed.BakeStatusMessage; why != nil {
		text += ": " + truncate.Text(*why, longestWhy)
	}
	return text
}

// failureIsAnswered checks that the failure was marked when it was recorded. So a
// spec.rollback that is added later does not undo what runs already.
func failureIsAnswered(a attempt) *verdict.Hold {
	const decide = "pin a version, or annotate the Rollout with retry or unblock-failed"
	switch cause := causeOf(a.failed); {
	case a.failed.RollbackDue != nil:
		return nil
	case !a.Rollout.Spec.Rollback.Answers(cause):
		return &verdict.Hold{
			Reason:  v1alpha1.CauseNotSelectedReason,
			Message: fmt.Sprintf("%s failed by %s, which spec.rollback.causes does not name: %s", a.failed.Version.Tag, cause, decide),
		}
	}
	return &verdict.Hold{
		Reason: v1alpha1.RollbackNotDueReason,
		Message: fmt.Sprintf("%s failed before spec.rollback was set like this, or another client has written its entry: %s",
			a.failed.Version.Tag, decide),
	}
}

// somethingIsProven checks that another release has succeeded here.
func somethingIsProven(a attempt) *verdict.Hold {
	if a.to != nil {
		return nil
	}
	return &verdict.Hold{
		Reason:  v1alpha1.NoProvenReleaseReason,
		Message: fmt.Sprintf("no release other than %s has succeeded here and is still known to be the same: pin one with spec.wantedVersion", a.failed.Version.Tag),
	}
}

// notBelowFloor checks that the release is not older than spec.rollback.notBelow.
func notBelowFloor(a attempt) *verdict.Hold {
	floor, tag := a.Rollout.Spec.Rollback.NotBelow, a.to.Version.Tag
	if floor == "" || floor == tag {
		return nil
	}
	order, ok := a.Policy.Order.Compare(tag, floor)
	if ok && order >= 0 {
		return nil
	}
	how := "is older than"
	if !ok {
		how = "cannot be compared with"
	}
	return &verdict.Hold{
		Reason: v1alpha1.BelowRollbackFloorReason,
		Message: fmt.Sprintf("%s succeeded last, and %s %s, which spec.rollback.notBelow names: deploy a fix, or pin a version",
			tag, how, floor),
	}
}

// versionLeftToTheController checks that no user has chosen a version. A pin is a state
// that a user wants, whatever version it names, but not before it has its approvals.
func versionLeftToTheController(a attempt) *verdict.Hold {
	switch {
	case a.awaits:
	case a.Rollout.Pinned() != "":
		return &verdict.Hold{
			Reason:  v1alpha1.PinnedReason,
			Message: fmt.Sprintf("spec.wantedVersion pins %s: remove it to go back to %s", verdict.Quote(a.Rollout.Pinned()), a.to.Version.Tag),
		}
	case a.Policy.Forced(a.Rollout) != "":
		return &verdict.Hold{
			Reason: v1alpha1.ForcedReason,
			Message: fmt.Sprintf("%s asks for %s: remove it to go back to %s",
				v1alpha1.ForceDeployAnnotation, verdict.Quote(a.Policy.Forced(a.Rollout)), a.to.Version.Tag),
		}
	}
	return nil
}

// delayIsOver checks that users had the time to do something else. Without a delay it is
// over at once, although both times are rounded up to the next second.
func delayIsOver(a attempt) *verdict.Hold {
	due, end := a.failed.RollbackDue.Time, a.failed.BakeEndTime
	if atOnce := end != nil && !due.After(end.Time); atOnce || !a.now.Before(due) {
		return nil
	}
	return &verdict.Hold{
		Reason:  v1alpha1.RollbackDelayedReason,
		Message: fmt.Sprintf("goes back to %s at %s, unless a user retries or pins a version before", a.to.Version.Tag, verdict.Clock(due)),
		Until:   due,
	}
}

// schedulesLetGoBack checks that all schedules are open, if the Rollout asks for that.
func schedulesLetGoBack(a attempt) *verdict.Hold {
	if a.Rollout.Spec.Rollback.Schedules != v1alpha1.RollbackSchedulesObey {
		return nil
	}
	hold := cmp.Or(everyScheduleValid(a.schedules), everyScheduleOpen(a.schedules))
	if hold != nil {
		hold.Message = fmt.Sprintf("goes back to %s when all schedules are open: %s", a.to.Version.Tag, hold.Message)
	}
	return hold
}

// standing returns what is said of going back, and when time alone changes that. The message
// is that of the running promotion.
func standing(in Input, ledger []v1alpha1.VersionInfo, message string) (Rollback, time.Time) {
	var never time.Time
	switch current := in.Rollout.Current(); {
	case !in.Rollout.Spec.RollsBack() || in.Targets.Outdate(in.Rollout.Status.History):
	case current.IsRollback():
		return bakeOf(in, current).asRollback(message), never
	case isToBeAnswered(in.Rollout):
		a := tryBack(in, ledger)
		if hold := a.hold(); hold != nil {
			return Rollback{Hold: *hold}, never
		}
		return Rollback{Hold: verdict.Hold{Reason: v1alpha1.RollbackDelayedReason, Message: "goes back to " + a.to.Version.Tag}}, never
	case in.MetadataOff && in.Rollout.Spec.RespectsBarriers():
		return Rollback{Hold: *noMarks()}, never
	case in.Rollout.Spec.RespectsBarriers() && current != nil && current.State() != v1alpha1.BakeFailed:
		return tryBack(in, ledger).ofUnknownMark()
	}
	return Rollback{}, never
}

// asRollback returns what is said of a rollback that is current.
func (b bake) asRollback(message string) Rollback {
	back := Rollback{Done: true, Hold: verdict.Hold{Reason: v1alpha1.AutomaticRollbackReason, Message: b.entry.Version.Tag}}
	if b.entry.Message != nil {
		back.Message += ", " + *b.entry.Message
	}
	if due := overdueSince(b.rollout, b.targets); !due.IsZero() && b.now.After(due) {
		if unhealthy := evidence.Unhealthy(b.health.Checks); len(unhealthy) > 0 {
			message += "; Unhealthy: " + evidence.NamesOf(unhealthy)
		}
		back.Reason = v1alpha1.RollbackOverdueReason
		back.Message = fmt.Sprintf("the rollback to %s has been overdue since %s: %s; deploy a fix with unblock-failed, or pin a version",
			b.entry.Version.Tag, verdict.Clock(due), message)
	}
	return back
}

// WayOut returns how to continue after the newest history entry has failed: what the
// controller does, or else what a user can do, and which release is good to go back to.
func WayOut(in Input) string {
	back, _ := standing(in, in.Rollout.Status.AvailableReleases, "")
	switch {
	case back.Reason == "":
		return goOn(in.Rollout, in.Policy, in.holding())
	case back.waits():
		return back.Message
	}
	return back.Message + "; " + goOn(in.Rollout, in.Policy, in.holding())
}

// LastGood returns the tag of the release that is good to go back to; empty if the history
// has none.
func LastGood(in Input) string {
	good, _ := provenUntil(in.Rollout, in.Policy, in.holding())
	if good == nil {
		return ""
	}
	return good.Version.Tag
}

// goOn returns what a user can do.
func goOn(rollout *v1alpha1.Rollout, policy releases.Policy, bad quarantined.Holding) string {
	good, _ := provenUntil(rollout, policy, bad)
	if good == nil {
		return "no good release is known; pin another one with spec.wantedVersion, or annotate with retry or unblock-failed"
	}
	return fmt.Sprintf("last good release: %s; roll back with spec.wantedVersion, or annotate with retry or unblock-failed",
		truncate.Text(good.Version.Tag, releases.LongestOfOld))
}
