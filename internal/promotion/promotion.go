// SPDX-License-Identifier: Apache-2.0

// Package promotion decides what happens to a Rollout next, and why.
//
// [Decide] is a pure function: it does not read the cluster or the clock, and it writes
// nothing. The controller does the rest. It gathers the [Input], calls [Decide], carries
// out the [Decision], and stores the history that [Record] returns. Code that explains or
// simulates a Rollout calls the same functions, and so shows the reasons that the
// controller acts on.
//
// The status of a Rollout contains its history (one entry per promotion, newest first)
// and its known releases (the ledger, oldest first). A candidate is a known release that
// is newer than the current one. A hold is a reason that keeps a candidate from being
// promoted.
//
// Below it are packages that know only what they are given:
//
//	releases          which releases there are, in which order, and what is known of them
//	content           which content the targets run
//	evidence          what HealthChecks prove about a promotion
//	upstream          what the environments before this one have proven
//	approvals         what people have approved, rejected or overridden
//	quarantined       what quarantines hold, and which failures they know
//	verdict           why a release is held, what could not be read, what is worth a report
//
// The files, in the order in which to read them:
//
//	promotion.go      Decide, and the table of what happens next: start here
//	input.go          what a decision depends on
//	decision.go       what it says
//	ahead.go          times that are still to come, which count as now
//
//	What happens next:
//
//	manual.go         what users choose: a pin, a force, a retry
//	outdated.go       a history that is older than its targets
//	moved.go          content that Flux has deployed without a request
//	first.go          the first promotion; taking over after the history was lost
//	bake.go           the outcome of the current promotion
//	bake_failure.go   by what it fails
//	bake_clock.go     when a bake is over, stands still, or is late
//	rollback.go       whether and where a Rollout goes back by itself
//	forward_only.go   which releases a rollback must not cross
//	attempt.go        what it goes back to
//	choice.go         what these say; the next automatic promotion
//
//	What holds a candidate:
//
//	checks.go         the table of what holds it
//	gates.go          holds by RolloutGates and schedules
//	approved.go       holds by gates that ask for approvals
//	elsewhere.go      holds by quarantines, and by the environments before this one
//	rollback_limit.go when it waits for a user instead of the next failure
//	standing.go       what can be said of any tag, candidate or not
//
//	What is answered, stored and logged:
//
//	requests.go       the table of what users ask for by annotation
//	history.go        the only code that changes the state of a history entry
//	metadata.go       what the registry has to report about releases, and has reported
//	reported.go       what is reported to quarantines
//	facts.go          what an entry says in fields, also for entries that lack them
//	messages.go       the sentences that follow from these facts
//
// No file calls one that calls it, directly or not: Decide is on top, and input.go and
// decision.go are below all others.
package promotion

import (
	"cmp"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// Decide returns what happens to the Rollout next.
func Decide(in Input) Decision {
	in = in.settled()
	in.Quarantines = in.Quarantines.Indexed(in.Policy.Image, in.Now)
	ledger, notes := in.grow()
	problem, until := refused(in, ledger)
	k := known{ledger: ledger, rules: promotionChecks(in), problem: problem}
	k.candidates = judge(in, ledger, k.rules)
	k.unblocks = in.Rollout.UnblocksFailed() && needsUnblock(in, k.candidates)
	c := next(in, k)
	c.Awaited = awaited(in, ledger)
	k.problem = cmp.Or(c.problem, problem)
	d := Decision{Resets: c.resets, Notes: notes}
	var lateAt, backAt time.Time
	d.Outcome, lateAt = late(in.Now, in.Rollout, in.Targets, c.Outcome)
	d.Rollback, backAt = standing(in, ledger, c.Message)
	if d.Action.Promotes() {
		d.Recovery = bakeOf(in, in.Rollout.Current()).recovery(d.Outcome)
	}
	kept := importance(in.Rollout, in.Policy, in.Gates, d.Release.Tag).Fit(ledger)
	resolved, resolvedAt := metadataResolved(in, kept.Ledger, notes)
	d.Releases = Releases{Ledger: kept.Ledger, Full: kept.Full, Candidates: k.candidates, MetadataResolved: resolved}
	k.ledger = kept.Ledger
	d.Requests = answers(in, d.Outcome, k)
	d.RecheckAt = recheckAt(in.Now, in.Targets, d.Candidates, until, c.at, lateAt, backAt, resolvedAt, in.approving().changes(d.Candidates, d.Awaited))
	return d
}

// recheckAt returns the earliest time at which time alone can change the decision: one of
// these times, or when time ends or rephrases what holds a candidate, or what a target has
// pulled.
func recheckAt(now time.Time, targets content.Targets, candidates []Verdict, times ...time.Time) time.Time {
	var first time.Time
	for _, at := range times {
		first = verdict.Earlier(first, at)
	}
	for _, candidate := range candidates {
		for _, hold := range candidate.Holds {
			first = verdict.Earlier(first, hold.Next())
		}
	}
	for _, target := range targets.All {
		first = verdict.Earlier(first, target.Changes)
	}
	if !first.After(now) {
		return time.Time{}
	}
	return first
}

// precedence is the complete policy of what happens next. The first step that applies
// decides.
var precedence = []func(Input, known) (choice, bool){
	chosenManually, // by a user
	adopted,        // the history is older than the targets
	moved,          // Flux has deployed content without a request
	retried,        // the failed promotion, by a user
	begun,          // the history is empty
	judged,         // a promotion runs
	rolledBack,     // a promotion has failed
	promotedNext,   // otherwise
}

// next returns what happens next. A step that does not apply may do so later.
func next(in Input, k known) choice {
	var at time.Time
	for _, step := range precedence {
		c, ok := step(in, k)
		if at = verdict.Earlier(at, c.at); ok {
			supersede(c.superseded, c.Release.Tag)
			c.Action, c.at = cmp.Or(c.Action, Nothing), at
			return c
		}
	}
	return choice{Outcome: Outcome{Action: Nothing}, at: at}
}

// supersede holds the eligible ones of the candidates, because a newer one is promoted.
func supersede(candidates []Verdict, promoted string) {
	reason := verdict.Hold{Reason: v1alpha1.SupersededReason, Message: promoted + " is newer and eligible"}
	for i := range candidates {
		if candidates[i].Eligible() {
			candidates[i].Holds = []verdict.Hold{reason}
		}
	}
}
