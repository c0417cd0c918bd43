// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

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
	// Awaited is the release that a user chose and that waits for approvals; nil if there is
	// none.
	Awaited *Verdict
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
// deploy-message. What nobody has requested leaves them for a later promotion, and so does all
// else while a choice waits.
func (o Outcome) usesUpWords() bool {
	return o.Grounds != v1alpha1.GroundsAdopted && o.Grounds != v1alpha1.GroundsMoved && o.Awaited == nil
}

// Verdict is the result of the checks for one candidate.
type Verdict struct {
	// Release that was evaluated.
	Release v1alpha1.VersionInfo
	// Holds are the reasons against promoting it now, the most important first.
	Holds []verdict.Hold
}

// Eligible reports whether the candidate has no holds.
func (v Verdict) Eligible() bool { return len(v.Holds) == 0 }

// HeldBy reports whether the candidate has a hold for one of the reasons.
func (v Verdict) HeldBy(reasons ...string) bool {
	return v.heldFor(func(reason string) bool { return slices.Contains(reasons, reason) })
}

// HeldByGates reports whether a gate, a schedule or an Environment holds the candidate.
func (v Verdict) HeldByGates() bool {
	return slices.ContainsFunc(v.Holds, func(h verdict.Hold) bool { return h.OfGates || verdict.IsOfGates(h.Reason) })
}

// HeldByUpstreams reports whether an environment before this one holds the candidate.
func (v Verdict) HeldByUpstreams() bool { return v.heldFor(verdict.IsOfUpstreams) }

func (v Verdict) heldFor(is func(reason string) bool) bool {
	return slices.ContainsFunc(v.Holds, func(h verdict.Hold) bool { return is(h.Reason) })
}

func verdictOf(candidates []Verdict, tag string) *Verdict {
	if i := slices.IndexFunc(candidates, func(v Verdict) bool { return v.Release.Tag == tag }); i >= 0 {
		return &candidates[i]
	}
	return nil
}

// check is a condition that must be true to promote a release without a user's request.
// It returns nil if the condition is true.
type check func(v1alpha1.VersionInfo) *verdict.Hold

// forAll is a check with the same result for every release. It is evaluated only once,
// because there can be thousands of releases.
func forAll(hold *verdict.Hold) check {
	return func(v1alpha1.VersionInfo) *verdict.Hold { return hold }
}

// Rollback is what is said of going back: the condition RolledBack.
type Rollback struct {
	// Hold is why a failed promotion is not answered by a rollback, at least not yet. For a
	// rollback that is current, it says what was done. It has no Reason if there is nothing
	// to say.
	verdict.Hold
	// Done is true if the current promotion is a rollback.
	Done bool
}

// waits reports whether the Rollout goes back as soon as what holds it back has ended.
func (r Rollback) waits() bool {
	switch r.Reason {
	case v1alpha1.RollbackDelayedReason, v1alpha1.ScheduleClosedReason, v1alpha1.InvalidScheduleReason,
		v1alpha1.PinnedReason, v1alpha1.ForcedReason:
		return true
	}
	return false
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
	case d.Awaited != nil:
		return d.Awaited.Holds[0].Reason, d.Awaited.Holds[0].Message
	case len(d.Candidates) > 0 && !d.Candidates[0].Eligible():
		return d.Candidates[0].Holds[0].Reason, d.Candidates[0].Holds[0].Message
	case len(d.Candidates) == 0:
		return v1alpha1.NoReleaseCandidatesReason, ""
	}
	return "", d.Message
}
