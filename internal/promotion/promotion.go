// SPDX-License-Identifier: Apache-2.0

// Package promotion decides what happens to a Rollout next, and why.
//
// [Decide] is a pure function: it reads no cluster, no clock and writes
// nothing. The controller gathers an [Input], carries out the [Decision] and
// stores what [Record] makes of it; whoever wants to explain or simulate a
// Rollout calls the same functions and so gives the reasons that are used.
//
// In the order in which a reader meets them:
//
//	promotion.go   Input, Decision, Decide
//	order.go       the order that an ImagePolicy gives its releases
//	ledger.go      which releases are known
//	room.go        which of them the status has room for
//	metadata.go    what the registry says of them
//	candidates.go  which of them are newer than what runs
//	manual.go      what people ask for
//	checks.go      what holds a candidate back
//	gates.go       RolloutGates and schedules
//	first.go       the first promotion, and taking over what ran before the history was lost
//	first_applied.go  taking over what runs already, if the Rollout asks for it
//	targets.go     what the driven Flux objects report
//	content.go     whether what Flux has pulled is the release
//	bake.go        how the current promotion is doing
//	recovery.go    promotions that cannot fail
//	failure.go     how to go on after one that failed
//	evidence.go    what a HealthCheck proves about it
//	history.go     the one place where a history entry changes its state
//	room_history.go how much of the history the status has room for
//	values.go      a decision as keys and values, for a log
package promotion

import (
	"fmt"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Input is everything that a decision depends on.
type Input struct {
	// Now is the moment of the decision.
	Now time.Time
	// Rollout is the object as it was read, its status included.
	Rollout *v1alpha1.Rollout
	// OthersWords are those of the annotations deploy-user and deploy-message that
	// somebody else wrote than made the choice at hand: they are of an earlier one.
	OthersWords map[string]bool
	// Policy is what the ImagePolicy offers.
	Policy Policy
	// Metadata is what the registry says of releases, as far as it is known.
	Metadata []Metadata
	// Gates are the gates and schedules that may hold releases back.
	Gates Gates
	// Health is what the selected HealthChecks say.
	Health Health
	// Targets is what the driven Flux objects carry and report.
	Targets Targets
}

// Policy is what a Flux ImagePolicy offers, read without interpreting it.
type Policy struct {
	// Name of the ImagePolicy.
	Name string
	// Image whose tags the policy ranks, without a tag; empty if it is not known.
	Image string
	// Order in which the policy ranks its releases, and which it admits.
	Order Order
	// Latest is the release that the policy names; nil if it names none.
	Latest *v1alpha1.VersionInfo
	// Scanned are tags that the last scan of the registry showed.
	Scanned []string
	// Complete is true if Scanned are all tags that the registry has.
	Complete bool
	// Partial says of tags that the last scan has found, and that Scanned lacks, why
	// they are not known; empty if there are none.
	Partial string
	// Problem is set if the policy could not be read or used, or complains.
	Problem *Problem
	// Blocking is true if because of Problem nothing may be promoted.
	Blocking bool
}

// Gates are the objects that may hold releases back.
type Gates struct {
	// Gates that name the Rollout, sorted by name, but for the Copies.
	Gates []v1alpha1.RolloutGate
	// Copies are the gates by which the Schedules show what they say now. They
	// are shown, and not judged: the schedules themselves are.
	Copies []v1alpha1.RolloutGate
	// Schedules that select the Rollout, sorted by name.
	Schedules []Window
	// Problem is set if any of them could not be read or evaluated.
	Problem *Problem
}

// Window is what a schedule that selects the Rollout says at Input.Now.
type Window struct {
	// Schedule is its kind and name.
	Schedule string
	// Open is true if promotions may start.
	Open bool
	// Message says whether it is open, because of what, and until when.
	Message string
	// Until is when Open changes; zero is never.
	Until time.Time
	// Problem is set if the schedule could not be evaluated.
	Problem *Problem
}

// Health holds the selected HealthChecks.
type Health struct {
	// Checks that the Rollout selects, sorted by namespace and name.
	Checks []v1alpha1.HealthCheck
	// Refused says of checks, by "namespace/name", why they cannot be reset.
	Refused map[string]string
	// Problem is set if they could not be selected or read.
	Problem *Problem
}

// Problem says what could not be read or evaluated, and what to do.
type Problem struct {
	// Reason is one of the v1alpha1 reasons.
	Reason string
	// Message for people.
	Message string
}

// Action is what a Decision asks for.
type Action string

const (
	// Nothing is to be done until something changes.
	Nothing Action = "Nothing"
	// Wait for an outcome that is expected.
	Wait Action = "Wait"
	// Promote the Decision's release.
	Promote Action = "Promote"
	// Supersede the running promotion by the Decision's release.
	Supersede Action = "Supersede"
	// Adopt the release that the targets carry already: after the history was
	// lost, or because spec.firstRelease is Applied.
	Adopt Action = "Adopt"
	// StartBake: the release is applied and healthy; the bake clock starts.
	StartBake Action = "StartBake"
	// FinishBake: the evidence held to the end.
	FinishBake Action = "FinishBake"
	// FailBake: a HealthCheck failed or the deadline passed.
	FailBake Action = "FailBake"
	// Retry: the failed current release is judged anew.
	Retry Action = "Retry"
)

// Promotes reports whether the action adds a history entry.
func (a Action) Promotes() bool {
	return a == Promote || a == Supersede || a == Adopt
}

// Decision is what to do now, why, and when to look again.
type Decision struct {
	// Action to carry out.
	Action Action
	// Release that is promoted or adopted.
	Release v1alpha1.VersionInfo
	// Manual is true if a person chose the release.
	Manual bool
	// Reason is one of the v1alpha1 reasons.
	Reason string
	// Message says in a sentence why the Action was chosen.
	Message string
	// Overdue is true while Wait lasts longer than a promotion usually takes at
	// this point, so that it is worth telling what Message waits for.
	Overdue bool
	// Learned is true if what the registry says of releases has become known and
	// is worth a write by itself.
	Learned bool
	// Failed lists the HealthChecks that failed the bake.
	Failed []v1alpha1.FailedHealthCheck
	// Resets are the HealthChecks, by index into Input.Health.Checks, that
	// must be reset before what they say counts for the current promotion.
	Resets []int
	// Ledger is status.availableReleases as it should be.
	Ledger []v1alpha1.VersionInfo
	// Full is true if the status has no room for a longer Ledger. The Candidates
	// are all there are, whether the Ledger has room for them or not.
	Full bool
	// Candidates are the releases newer than the current one, newest first,
	// each with its verdict.
	Candidates []Verdict
	// Problem keeps a person's order or the whole Rollout from being carried
	// out; nil if there is none.
	Problem *Problem
	// Recovery is set if the release that is promoted cannot fail, and says
	// why.
	Recovery *Note
	// Spent are the annotations on the Rollout that are used up or answered;
	// they are removed once the decision is recorded.
	Spent []string
	// Answers tell of those requests among the spent ones that had no effect.
	Answers []Note
	// Refused says of a request that stays why it has no effect; nil if there
	// is none.
	Refused *Problem
	// Notes are facts worth an event that no condition carries.
	Notes []Note
	// RecheckAt is when time alone may change the decision; zero is never.
	RecheckAt time.Time
}

// Note is a fact worth telling once.
type Note struct {
	// Reason is one of the v1alpha1 reasons.
	Reason string
	// Message for people.
	Message string
}

// Decide says what happens to the Rollout next.
func Decide(in Input) Decision {
	ledger, notes := grow(in)
	d := Decision{Action: Nothing, Ledger: ledger, Notes: notes, Problem: impossible(in.Rollout, ledger)}
	d.Candidates = judge(in, ledger)
	d.choose(in)
	if d.Action.Promotes() {
		d.Recovery = recovery(in, &d)
	}
	kept := withinRoom(in, ledger, d.Release.Tag)
	d.Ledger, d.Full = kept.ledger, kept.full
	d.answer(in)
	d.learn(in)
	d.recheck(in)
	return d
}

// choose fills in the action: a person's choice first, then what Flux deploys
// without having been asked, then the outcome of the running promotion, then the next
// promotion.
func (d *Decision) choose(in Input) {
	switch {
	case d.chooseByHand(in), d.chooseMoved(in), d.chooseRetry(in):
	case len(in.Rollout.Status.History) == 0:
		d.chooseFirst(in)
	case in.Rollout.Current().State().Running():
		d.chooseOutcome(in)
	default:
		d.chooseCandidate(in)
	}
}

// chooseCandidate promotes the newest eligible candidate.
func (d *Decision) chooseCandidate(in Input) {
	for i := range d.Candidates {
		if d.Candidates[i].Eligible() {
			d.promote(in, d.Candidates[i].Release)
			d.Reason = v1alpha1.EligibleReason
			d.Message = d.grounds(in)
			d.supersedeBelow(i)
			return
		}
	}
}

// What the message of an entry ends with that used up a bypass, and an unblock.
const (
	pastGates   = "; a person let it past the gates"
	pastFailure = "; a person let it past a failure"
)

// grounds says why the release was chosen, and what a person lifted for it.
func (d *Decision) grounds(in Input) string {
	which := "the newest eligible"
	if in.Rollout.Spec.ReleaseStrategy == v1alpha1.ReleaseNext {
		which = "the next"
	}
	text := fmt.Sprintf("%s release of ImagePolicy %s", which, in.Policy.Name)
	if Bypassed(in, d.Candidates) == d.Release.Tag {
		text += pastGates
	}
	if in.Rollout.UnblocksFailed() && needsUnblock(in, d.Candidates) {
		text += pastFailure
	}
	return text
}

// supersedeBelow says of the eligible candidates below index i that the one
// at i goes instead.
func (d *Decision) supersedeBelow(i int) {
	reason := Hold{Reason: v1alpha1.SupersededReason, Message: d.Candidates[i].Release.Tag + " is newer and eligible"}
	for j := i + 1; j < len(d.Candidates); j++ {
		if d.Candidates[j].Eligible() {
			d.Candidates[j].Holds = []Hold{reason}
		}
	}
}

func (d *Decision) promote(in Input, release v1alpha1.VersionInfo) {
	d.Action, d.Release = Promote, release
	if in.Rollout.Current().State().Running() {
		d.Action = Supersede
	}
}

// recheck keeps the earliest moment at which time alone may change the
// decision: that of the bake, or that of a candidate which only time holds.
func (d *Decision) recheck(in Input) {
	for _, candidate := range d.Candidates {
		for _, hold := range candidate.Holds {
			d.lookAt(hold.Until)
		}
	}
	if !d.RecheckAt.After(in.Now) {
		d.RecheckAt = time.Time{}
	}
}

// lookAt moves RecheckAt forward to t if that is earlier.
func (d *Decision) lookAt(t time.Time) {
	if !t.IsZero() && (d.RecheckAt.IsZero() || t.Before(d.RecheckAt)) {
		d.RecheckAt = t
	}
}
