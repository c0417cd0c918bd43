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
//	quarantined       what quarantines hold, and which failures they know
//	verdict           why a release is held, what could not be read, what is worth a report
//
// The files, in the order in which to read them:
//
//	promotion.go      Input, Decision and Decide: start here
//	ahead.go          times that are still to come, which count as now
//
//	Which releases can be promoted:
//
//	metadata.go       what the registry has to report about releases, and has reported
//	standing.go       what can be said of any tag, candidate or not
//
//	Which of them is promoted:
//
//	precedence.go     the table of what happens next
//	requests.go       the table of what users ask for by annotation
//	manual.go         what users choose: a pin, a force
//	checks.go         the table of what holds a candidate
//	gates.go          holds by RolloutGates and schedules
//	elsewhere.go      holds by quarantines, and by the environments before this one
//	first.go          the first promotion; taking over after the history was lost
//	outdated.go       a history that is older than its targets
//
//	How the current promotion is doing:
//
//	moved.go          content that Flux has deployed without a request
//	bake.go           the outcome of the current promotion
//	bake_clock.go     when a bake is over, stands still, or is late
//	bake_failure.go   by what a promotion fails
//	failure.go        how to continue after a failed promotion
//	rollback.go       whether and where a Rollout goes back by itself
//	forward_only.go   which releases a rollback must not cross
//	rollback_limit.go when it waits for a user instead of the next failure
//
//	What is stored and logged:
//
//	history.go        the only code that changes the state of a history entry
//	facts.go          what an entry says in fields, also for entries that lack them
//	messages.go       the sentences that follow from these facts
//	reported.go       what is reported to quarantines
package promotion

import (
	"cmp"
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Input is everything that a decision depends on.
type Input struct {
	// Now is the time of the decision.
	Now time.Time
	// Rollout is the object as it was read, including its status.
	Rollout *v1alpha1.Rollout
	// ForeignAnnotations are those of deploy-user and deploy-message that a different user
	// than the one who chose the version has written. They belong to an earlier choice.
	ForeignAnnotations map[string]bool
	// Policy is what the ImagePolicy offers.
	Policy releases.Policy
	// Metadata is what the registry reports about releases, as far as it is known.
	Metadata []releases.Metadata
	// MetadataOff is true if the controller does not read metadata from registries.
	MetadataOff bool
	// Gates are the gates and schedules that can hold releases.
	Gates Gates
	// Upstreams are the environments that must have proven a release.
	Upstreams upstream.Upstreams
	// Quarantines are the releases that failed elsewhere, or were recalled.
	Quarantines quarantined.Quarantines
	// Health is what the selected HealthChecks report.
	Health evidence.Health
	// Targets contains what the Flux objects of the Rollout have set and report.
	Targets content.Targets
}

// Gates are the objects that can hold releases.
type Gates struct {
	// Gates that name the Rollout, sorted by name, except the Copies.
	Gates []v1alpha1.RolloutGate
	// Copies are the gates that show the current state of the Schedules. They are shown, but
	// not evaluated: the schedules themselves are evaluated.
	Copies []v1alpha1.RolloutGate
	// Mirror is the gate that shows what is [Mirrored]; nil if there is none. It is not
	// evaluated either.
	Mirror *v1alpha1.RolloutGate
	// Schedules that select the Rollout, sorted by name.
	Schedules []Window
	// Problem is set if any of them could not be read or evaluated.
	Problem *verdict.Problem
}

// Window is the state of a schedule that selects the Rollout, at Input.Now.
type Window struct {
	// Schedule is the kind and name of the schedule.
	Schedule string
	// Open is true if promotions may start.
	Open bool
	// Message says whether the schedule is open, why, and until when.
	Message string
	// Until is when Open changes; zero means never.
	Until time.Time
	// Problem is set if the schedule could not be evaluated.
	Problem *verdict.Problem
}

// Action is the action that a Decision requests.
type Action string

const (
	// Nothing means that nothing is to be done until something changes.
	Nothing Action = "Nothing"
	// Wait for an outcome that is expected.
	Wait Action = "Wait"
	// Promote the Decision's release.
	Promote Action = "Promote"
	// Supersede the running promotion with the Decision's release.
	Supersede Action = "Supersede"
	// Adopt the release that the targets already have: because the history was lost or is
	// older, or because spec.firstRelease is Applied.
	Adopt Action = "Adopt"
	// StartBake: the release is applied and healthy; the bake clock starts.
	StartBake Action = "StartBake"
	// FinishBake: the release is applied and healthy at the end of the bake.
	FinishBake Action = "FinishBake"
	// FailBake: a HealthCheck failed or the deadline passed.
	FailBake Action = "FailBake"
	// Retry: the failed current release is evaluated again.
	Retry Action = "Retry"
)

// Promotes reports whether the action adds a history entry.
func (a Action) Promotes() bool {
	return a == Promote || a == Supersede || a == Adopt
}

// Decision is what to do now, why, and when to look again.
type Decision struct {
	Outcome
	Releases
	Requests

	// Rollback is what is said of going back, before the action is carried out.
	Rollback Rollback
	// Resets are the HealthChecks, by index into Input.Health.Checks, that must be reset
	// before their result counts for the current promotion.
	Resets []int
	// Notes are facts that are worth an event and that no condition shows.
	Notes []verdict.Note
	// RecheckAt is when time alone can change the decision; zero means never.
	RecheckAt time.Time
}

// Outcome is what happens to the promotion.
type Outcome struct {
	// Action to carry out.
	Action Action
	// Release that is promoted or adopted.
	Release v1alpha1.VersionInfo
	// Grounds is why the release is promoted or adopted.
	Grounds v1alpha1.Grounds
	// Lifted are the holds that a user lifted for it.
	Lifted []v1alpha1.LiftedHold
	// Manual is true if a user chose the release.
	Manual bool
	// Reason is one of the v1alpha1 reasons.
	Reason string
	// Message explains in one sentence why the Action was chosen.
	Message string
	// Overdue is true if Wait lasts longer than a promotion usually takes at this point.
	// Then it is worth reporting what Message waits for.
	Overdue bool
	// Unproven is true if not everything proves a release healthy that bakes.
	Unproven bool
	// LateSince is when the promotion was due, if that is so long ago that somebody
	// should know; zero otherwise.
	LateSince time.Time
	// Failed lists the HealthChecks that failed the bake.
	Failed []v1alpha1.FailedHealthCheck
	// Recovery is set if the promoted release cannot fail. It explains why.
	Recovery *verdict.Note
	// Cause of a failure.
	Cause v1alpha1.FailureCause
	// Back is set if the promotion is an automatic rollback.
	Back *v1alpha1.RollbackRecord
}

// Releases are the known releases, and what is said of the newer ones.
type Releases struct {
	// Ledger is the new value of status.availableReleases.
	Ledger []v1alpha1.VersionInfo
	// Full is true if a longer Ledger does not fit into the status. Candidates contains all
	// candidates, even those that do not fit into the Ledger.
	Full bool
	// Candidates are the releases newer than the current one, newest first, each with its
	// verdict.
	Candidates []Verdict
	// MetadataResolved is true if metadata from the registry has become known and is worth a
	// write by itself.
	MetadataResolved bool
}

// Requests are the answers to what users have asked for.
type Requests struct {
	// Problem prevents a user's request or the whole Rollout from being carried out; nil if
	// there is none.
	Problem *verdict.Problem
	// Consumed are the annotations of the Rollout that are used up or answered. They are
	// removed once the decision is recorded.
	Consumed []string
	// Answers report those of the consumed requests that had no effect.
	Answers []verdict.Note
	// Declined explains why a request that stays on the Rollout has no effect; nil if there
	// is none.
	Declined *verdict.Problem
}

func (o Outcome) hasLifted(hold v1alpha1.LiftedHold) bool { return slices.Contains(o.Lifted, hold) }

// Deploys reports whether the targets have yet to show which content they run: all else than
// content that they have pulled without a request.
func (o Outcome) Deploys() bool { return o.Action.Promotes() && o.Reason != v1alpha1.TagMovedReason }

// usesUpWords reports whether the promotion uses up the annotations deploy-user and
// deploy-message. What nobody has requested leaves them for a later promotion.
func (o Outcome) usesUpWords() bool {
	return o.Grounds != v1alpha1.GroundsAdopted && o.Grounds != v1alpha1.GroundsMoved
}

// Decide returns what happens to the Rollout next.
func Decide(in Input) Decision {
	in = in.settled()
	in.Quarantines = in.Quarantines.Indexed(in.Policy.Image, in.Now)
	ledger, notes := in.grow()
	problem, until := refused(in, ledger)
	k := known{ledger: ledger, rules: promotionChecks(in), problem: problem}
	k.candidates = judge(in, ledger, k.rules)
	c := next(in, k)
	k.problem = cmp.Or(c.problem, problem)
	d := Decision{Resets: c.resets, Notes: notes}
	var lateAt, backAt time.Time
	d.Outcome, lateAt = late(in.Now, in.Rollout, in.Targets, c.Outcome)
	d.Rollback, backAt = standing(in, ledger, c.Message)
	if d.Action.Promotes() {
		d.Recovery = recovery(in, d.Outcome)
	}
	kept := importance(in.Rollout, in.Policy, in.Gates, d.Release.Tag).Fit(ledger)
	resolved, resolvedAt := metadataResolved(in, kept.Ledger, notes)
	d.Releases = Releases{Ledger: kept.Ledger, Full: kept.Full, Candidates: k.candidates, MetadataResolved: resolved}
	k.ledger = kept.Ledger
	d.Requests = answers(in, d.Outcome, k)
	d.RecheckAt = recheckAt(in.Now, in.Targets, d.Candidates, until, c.at, lateAt, backAt, resolvedAt)
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

// LogValues returns the decision as keys and values for a line of the log: what is done
// and why, or else what prevents it. Texts are cut to a size limit.
func (d Decision) LogValues() []any {
	reason, message := d.why()
	values := []any{"action", string(d.Action), "reason", reason}
	if message != "" {
		const longest = 512
		values = append(values, "message", truncate.Text(message, longest))
	}
	if d.Release.Tag != "" {
		values = append(values, "release", d.Release.Tag)
	}
	values = append(values, "candidates", len(d.Candidates))
	if len(d.Resets) > 0 {
		values = append(values, "resets", len(d.Resets))
	}
	if !d.RecheckAt.IsZero() {
		values = append(values, "recheckAt", d.RecheckAt.UTC().Format(time.RFC3339))
	}
	return values
}

// why returns the reason of the action. If nothing is done, it returns that of the
// Problem, or the first hold of the newest candidate.
func (d Decision) why() (reason, message string) {
	switch {
	case d.Reason != "":
		return d.Reason, d.Message
	case d.Problem != nil:
		return d.Problem.Reason, d.Problem.Message
	case len(d.Candidates) > 0 && !d.Candidates[0].Eligible():
		return d.Candidates[0].Holds[0].Reason, d.Candidates[0].Holds[0].Message
	case len(d.Candidates) == 0:
		return v1alpha1.NoReleaseCandidatesReason, ""
	}
	return "", d.Message
}
