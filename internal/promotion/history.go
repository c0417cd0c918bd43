// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// SystemName is the name under which the controller's own choices are recorded.
const SystemName = "rollout-controller"

// nextStates lists the state transitions that are valid for a history entry.
var nextStates = map[v1alpha1.BakeStatus][]v1alpha1.BakeStatus{
	"": {v1alpha1.BakeDeploying, v1alpha1.BakeSucceeded},
	v1alpha1.BakeDeploying: {
		v1alpha1.BakeInProgress, v1alpha1.BakeSucceeded, v1alpha1.BakeFailed, v1alpha1.BakeCancelled,
	},
	v1alpha1.BakeInProgress: {v1alpha1.BakeSucceeded, v1alpha1.BakeFailed, v1alpha1.BakeCancelled},
	v1alpha1.BakeSucceeded:  nil,
	v1alpha1.BakeFailed:     {v1alpha1.BakeDeploying},
	v1alpha1.BakeCancelled:  nil,
}

// Record returns the history after the decision. It does not modify the input. It fails
// if the current entry does not allow the decision.
func Record(in Input, d Decision) ([]v1alpha1.DeploymentHistoryEntry, error) {
	in = in.settled()
	history := make([]v1alpha1.DeploymentHistoryEntry, 0, len(in.Rollout.Status.History)+1)
	for i := range in.Rollout.Status.History {
		history = append(history, *in.Rollout.Status.History[i].DeepCopy())
	}
	recordContent(in, history)
	recordReported(in.Rollout, in.Quarantines, history)
	b := bakeOf(in, nil)
	if len(history) > 0 {
		b.entry = &history[0]
	}
	if !d.Action.Promotes() {
		b.recordApplied()
		b.recordClock(d.Outcome)
		if since := in.approving().approvedSince(); since != nil {
			history[0].Approval = since
		}
	}
	switch pulled := in.Content().Pulled(); d.Action {
	case Promote, Supersede, Adopt:
		return recordPromotion(in, b, d, history)
	case StartBake:
		return history, b.recordOutcome(d.Outcome, v1alpha1.BakeInProgress, pulled)
	case FinishBake:
		return history, b.recordOutcome(d.Outcome, v1alpha1.BakeSucceeded, pulled)
	case FailBake:
		return history, b.recordOutcome(d.Outcome, v1alpha1.BakeFailed, pulled)
	case Retry:
		return history, b.recordRetry()
	case Nothing, Wait:
	}
	return history, nil
}

// advance is the only function that changes the state of a history entry.
func (b bake) advance(to v1alpha1.BakeStatus, why string) error {
	e, from := b.entry, b.entry.State()
	if !slices.Contains(nextStates[from], to) {
		return fmt.Errorf("a promotion cannot go from %q to %q", from, to)
	}
	why = truncate.Text(why, verdict.LongestMessage)
	e.BakeStatus, e.BakeStatusMessage = &to, &why
	healthy := to == v1alpha1.BakeInProgress || to == v1alpha1.BakeSucceeded && Protected(&b.rollout.Spec)
	if healthy && e.BakeStartTime == nil {
		e.BakeStartTime = &metav1.Time{Time: verdict.WholeSecond(b.now)}
	}
	if !to.Running() {
		e.BakeEndTime = &metav1.Time{Time: verdict.WholeSecond(b.now)}
	}
	return nil
}

// recordOutcome records what becomes of the running promotion, and the digest that Flux has
// pulled.
func (b bake) recordOutcome(o Outcome, to v1alpha1.BakeStatus, pulled string) error {
	if !b.entry.State().Running() {
		return fmt.Errorf("no promotion is under way that could become %q", to)
	}
	b.entry.FailedHealthChecks = releases.FailedToLimit(o.Failed)
	if to == v1alpha1.BakeFailed {
		b.recordCause(o.Cause)
	} else if b.entry.Version.Digest == nil {
		b.entry.Version.Digest = releases.OrNil(pulled)
	}
	if to == v1alpha1.BakeSucceeded {
		b.entry.ProvenBy = b.proof()
	}
	return b.advance(to, o.Message)
}

// recordRetry starts the failed entry again. Deadline and evidence count from the retry.
// Its timestamp is a signal for other controllers, which compare it with the times of
// errors. Therefore it is later than any time that was seen. The deadline of the retry
// counts by this controller's clock, whatever other clocks show.
func (b bake) recordRetry() error {
	entry, at := b.entry, verdict.WholeSecond(b.now)
	if entry.State() != v1alpha1.BakeFailed {
		return errors.New("no promotion has failed that could be retried")
	}
	for _, seen := range b.seenBefore() {
		if seen != nil && !at.After(seen.Time) {
			at = verdict.WholeSecond(seen.Add(time.Second))
		}
	}
	entry.LastRetryTimestamp, entry.RetryStartTime = &metav1.Time{Time: at}, nil
	if now := verdict.WholeSecond(b.now); at.Sub(now) > aMoment {
		entry.RetryStartTime = &metav1.Time{Time: now}
	}
	entry.BakeStartTime, entry.BakeEndTime, entry.AppliedTime, entry.FailedHealthChecks = nil, nil, nil, nil
	entry.Cause, entry.RollbackDue, entry.Quarantine = "", nil, ""
	entry.UnprovenSince, entry.UnprovenFor = nil, nil
	return b.advance(v1alpha1.BakeDeploying, "retried; "+b.expectation())
}

// seenBefore returns the times that the timestamp of a retry must be later than.
func (b bake) seenBefore() []*metav1.Time {
	times := []*metav1.Time{&b.entry.Timestamp, b.entry.LastRetryTimestamp}
	for i := range b.health.Checks {
		times = append(times, b.health.Checks[i].Status.LastErrorTime)
	}
	return times
}

func recordPromotion(in Input, b bake, d Decision, history []v1alpha1.DeploymentHistoryEntry) ([]v1alpha1.DeploymentHistoryEntry, error) {
	if b.entry.State().Running() {
		if err := b.advance(v1alpha1.BakeCancelled, "superseded by "+Successor(b.entry, d.Outcome)); err != nil {
			return nil, err
		}
	}
	b.entry = newEntry(in, d.Outcome, history)
	if err := b.advance(b.firstState(), b.expectation()); err != nil {
		return nil, err
	}
	if b.entry.State() == v1alpha1.BakeSucceeded {
		b.entry.ProvenBy = &v1alpha1.Proof{}
	}
	return limit(append([]v1alpha1.DeploymentHistoryEntry{*b.entry}, history...), in, d.Ledger), nil
}

// Successor returns the name of what replaces the current release.
func Successor(current *v1alpha1.DeploymentHistoryEntry, o Outcome) string {
	switch {
	case o.Reason == v1alpha1.TagMovedReason:
		return "other content of the same tag"
	case o.Release.Tag == current.Version.Tag:
		return "a newer promotion of it"
	}
	return o.Release.Tag
}

func newEntry(in Input, o Outcome, history []v1alpha1.DeploymentHistoryEntry) *v1alpha1.DeploymentHistoryEntry {
	id := nextID(in.Now, in.Targets, history)
	message, by := entryMessage(in.Rollout, in.ForeignAnnotations, o), triggeredBy(in, o)
	entry := &v1alpha1.DeploymentHistoryEntry{
		ID:          &id,
		Version:     *o.Release.DeepCopy(),
		Image:       in.Policy.RecordedImage(),
		Timestamp:   metav1.NewTime(in.Now.Truncate(time.Second)),
		Grounds:     o.Grounds,
		Lifted:      o.Lifted,
		Message:     &message,
		TriggeredBy: &by,
		Rollback:    o.Back,
		Approval:    in.approving().record(o, overrideLifts(in, o)),
	}
	if o.Recovery != nil {
		entry.Recovery = v1alpha1.Recovery(o.Recovery.Reason)
	}
	if o.usesUpWords() {
		entry.RequestDigest = requestDigest(in.Rollout, in.ForeignAnnotations)
	}
	return entry
}

// triggeredBy returns the user who claims to have caused a manual promotion, or else the
// field manager that did. For all other promotions it returns the controller.
func triggeredBy(in Input, o Outcome) v1alpha1.TriggeredBy {
	if !o.Manual {
		return v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredBySystem, Name: SystemName}
	}
	name := words(in.Rollout, in.ForeignAnnotations, v1alpha1.DeployUserAnnotation)
	verified := name != "" && name == in.Approvals.Requesters[o.Release.Tag]
	user := cmp.Or(name, in.ChosenBy, v1alpha1.UnknownUser)
	return v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredByUser, Name: truncate.Text(user, verdict.LongestName), Verified: verified}
}

// nextID returns the highest id plus one. If the history was lost, or is older than the
// targets, it continues from Unix time, above the ids of the targets: other programs may
// have stored the ids of entries that wrote no target, and of which nothing is left.
func nextID(now time.Time, targets content.Targets, history []v1alpha1.DeploymentHistoryEntry) int64 {
	highest, written := content.HighestID(history), targets.NewestPromotion()
	if lost := highest == 0 && len(targets.Owned) > 0; lost || written > highest {
		return max(now.Unix(), written+1)
	}
	return highest + 1
}

// firstState returns Deploying, unless there is nothing at all to wait for.
func (b bake) firstState() v1alpha1.BakeStatus {
	if !Protected(&b.rollout.Spec) && b.targets.Problem == nil && len(b.targets.All) == 0 {
		return v1alpha1.BakeSucceeded
	}
	return v1alpha1.BakeDeploying
}

// expectation describes what the new entry waits for.
func (b bake) expectation() string {
	nothing := "no Flux object is annotated with this Rollout"
	tag, targets, checks := b.entry.Version.Tag, len(b.targets.All), verdict.Count(len(b.health.Checks), "HealthCheck")
	switch {
	case b.firstState() == v1alpha1.BakeSucceeded:
		return nothing + ": nothing to deploy"
	case targets == 0 && b.targets.Problem == nil && len(b.health.Checks) > 0:
		return nothing + "; waiting for " + checks
	case len(b.health.Checks) > 0:
		return fmt.Sprintf("waiting for Flux to apply %s to %s, then for %s", tag, verdict.Count(targets, "target"), checks)
	}
	return fmt.Sprintf("waiting for Flux to apply %s to %s", tag, verdict.Count(targets, "target"))
}

// limit cuts the history to its limit. Entries that decide about candidates stay.
func limit(history []v1alpha1.DeploymentHistoryEntry, in Input, ledger []v1alpha1.VersionInfo) []v1alpha1.DeploymentHistoryEntry {
	most := in.Rollout.Spec.GetVersionHistoryLimit()
	if len(history) <= most {
		return history
	}
	kept := slices.Clone(history[:most])
	retained := retainedEntries(in.Rollout, in.Policy, in.holding(), history, ledger)
	for i := most; i < len(history); i++ {
		if retained[i] {
			kept = append(kept, history[i])
		}
	}
	return kept
}

// retainedEntries reports which entries decide about candidates: the current entry, the
// entry that candidates must be newer than, and the newest failure of each candidate.
// Without the failure, a failed release could be promoted again. While the policy cannot
// be used, the candidates are not known, and the newest entry of each release stays.
// retainForRollback adds what rollbacks need.
func retainedEntries(
	rollout *v1alpha1.Rollout, policy releases.Policy, bad quarantined.Holding, history []v1alpha1.DeploymentHistoryEntry, ledger []v1alpha1.VersionInfo,
) []bool {
	position := releases.PositionOf(ledger, history, policy).Tag
	candidates := releases.TagsOf(releases.Candidates(ledger, history, policy))
	if rollout.Spec.RollsBack() {
		maps.Copy(candidates, releases.CandidatesAfterRollback(ledger, history, policy))
	}
	retained, reported := make([]bool, len(history)), map[string]bool{}
	for i := range history {
		tag := history[i].Version.Tag
		failed := history[i].State() == v1alpha1.BakeFailed && candidates[tag]
		retained[i] = i == 0 || !reported[tag] && (failed || tag == position || policy.Blocking)
		reported[tag] = true
	}
	if rollout.Spec.RollsBack() {
		retainForRollback(policy, bad, history, ledger, retained)
	}
	return retained
}

// recordCause says in the history why a promotion has failed, and when a rollback answers
// it. A rollback itself never fails.
func (b bake) recordCause(cause v1alpha1.FailureCause) {
	spec := &b.rollout.Spec
	if b.entry.Cause = cause; !spec.RollsBack() || !spec.Rollback.Answers(cause) {
		return
	}
	due := verdict.WholeSecond(b.now)
	if delay := spec.Rollback.Delay; delay != nil {
		due = verdict.WholeSecond(due.Add(delay.Duration))
	}
	b.entry.RollbackDue = &metav1.Time{Time: due}
}

// recordApplied stores when the targets were first seen to have applied the release.
func (b bake) recordApplied() {
	if !b.entry.State().Running() || b.entry.AppliedTime != nil || b.targets.Outdate(b.rollout.Status.History) || !b.targets.AreApplied() {
		return
	}
	b.entry.AppliedTime = &metav1.Time{Time: b.now.Truncate(time.Second)}
}

// recordClock stores since when the bake clock stands still, and for how long it has.
func (b bake) recordClock(o Outcome) {
	entry := b.entry
	switch baking := entry.State() == v1alpha1.BakeInProgress && (o.Action == Wait || o.Action == FinishBake); {
	case baking && o.Unproven && entry.UnprovenSince == nil:
		entry.UnprovenSince = &metav1.Time{Time: b.now.Truncate(time.Second)}
	case baking && !o.Unproven && entry.UnprovenSince != nil:
		entry.UnprovenFor = &metav1.Duration{Duration: entry.StoodStill(verdict.WholeSecond(b.now))}
		entry.UnprovenSince = nil
		if o.Action == Wait {
			entry.BakeStatusMessage = releases.OrNil(truncate.Text(b.remaining(), verdict.LongestMessage))
		}
	}
}

// proof counts what the release is proven by, once everything is applied and healthy.
func (b bake) proof() *v1alpha1.Proof {
	return &v1alpha1.Proof{
		Targets: asCount(len(b.targets.All)), PulledOnly: asCount(b.targets.PulledOnly()), HealthChecks: asCount(len(b.health.Checks)),
	}
}

// asCount returns a number as the API has it.
func asCount(n int) int32 { return int32(min(n, math.MaxInt32)) }
