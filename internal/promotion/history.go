// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
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
	if !d.Action.Promotes() {
		recordApplied(in.Now, in.Rollout, in.Targets, history)
		recordBakeClock(in, d.Outcome, history)
	}
	switch d.Action {
	case Promote, Supersede, Adopt:
		return recordPromotion(in, d, history)
	case StartBake:
		return recordOutcome(in, d.Outcome, history, v1alpha1.BakeInProgress)
	case FinishBake:
		return recordOutcome(in, d.Outcome, history, v1alpha1.BakeSucceeded)
	case FailBake:
		return recordOutcome(in, d.Outcome, history, v1alpha1.BakeFailed)
	case Retry:
		return recordRetry(in, history)
	case Nothing, Wait:
	}
	return history, nil
}

// advance is the only function that changes the state of a history entry.
func advance(e *v1alpha1.DeploymentHistoryEntry, to v1alpha1.BakeStatus, why string, in Input) error {
	from := e.State()
	if !slices.Contains(nextStates[from], to) {
		return fmt.Errorf("a promotion cannot go from %q to %q", from, to)
	}
	why = truncate.Text(why, verdict.LongestMessage)
	e.BakeStatus, e.BakeStatusMessage = &to, &why
	healthy := to == v1alpha1.BakeInProgress || to == v1alpha1.BakeSucceeded && Protected(&in.Rollout.Spec)
	if healthy && e.BakeStartTime == nil {
		e.BakeStartTime = &metav1.Time{Time: verdict.WholeSecond(in.Now)}
	}
	if !to.Running() {
		e.BakeEndTime = &metav1.Time{Time: verdict.WholeSecond(in.Now)}
	}
	return nil
}

func recordOutcome(
	in Input, o Outcome, history []v1alpha1.DeploymentHistoryEntry, to v1alpha1.BakeStatus,
) ([]v1alpha1.DeploymentHistoryEntry, error) {
	if !in.Rollout.Current().State().Running() {
		return nil, fmt.Errorf("no promotion is under way that could become %q", to)
	}
	history[0].FailedHealthChecks = releases.FailedToLimit(o.Failed)
	recordCause(in.Now, in.Rollout, o, &history[0])
	if version := &history[0].Version; version.Digest == nil && o.Action != FailBake {
		version.Digest = releases.OrNil(in.Content().Pulled())
	}
	if to == v1alpha1.BakeSucceeded {
		history[0].ProvenBy = proofOf(in.Health, in.Targets)
	}
	return history, advance(&history[0], to, o.Message, in)
}

// recordRetry starts the failed entry again. Deadline and evidence count from the retry.
// Its timestamp is a signal for other controllers, which compare it with the times of
// errors. Therefore it is later than any time that was seen. The deadline of the retry
// counts by this controller's clock, whatever other clocks show.
func recordRetry(in Input, history []v1alpha1.DeploymentHistoryEntry) ([]v1alpha1.DeploymentHistoryEntry, error) {
	if in.Rollout.Current().State() != v1alpha1.BakeFailed {
		return nil, errors.New("no promotion has failed that could be retried")
	}
	entry := &history[0]
	at := verdict.WholeSecond(in.Now)
	for _, seen := range seenBefore(in.Health, entry) {
		if seen != nil && !at.After(seen.Time) {
			at = verdict.WholeSecond(seen.Add(time.Second))
		}
	}
	entry.LastRetryTimestamp, entry.RetryStartTime = &metav1.Time{Time: at}, nil
	if now := verdict.WholeSecond(in.Now); at.Sub(now) > aMoment {
		entry.RetryStartTime = &metav1.Time{Time: now}
	}
	entry.BakeStartTime, entry.BakeEndTime, entry.AppliedTime, entry.FailedHealthChecks = nil, nil, nil, nil
	entry.Cause, entry.RollbackDue, entry.Quarantine = "", nil, ""
	entry.UnprovenSince, entry.UnprovenFor = nil, nil
	return history, advance(entry, v1alpha1.BakeDeploying, "retried; "+expectation(in, entry.Version.Tag), in)
}

// seenBefore returns the times that the timestamp of a retry must be later than.
func seenBefore(health evidence.Health, entry *v1alpha1.DeploymentHistoryEntry) []*metav1.Time {
	times := []*metav1.Time{&entry.Timestamp, entry.LastRetryTimestamp}
	for i := range health.Checks {
		times = append(times, health.Checks[i].Status.LastErrorTime)
	}
	return times
}

func recordPromotion(in Input, d Decision, history []v1alpha1.DeploymentHistoryEntry) ([]v1alpha1.DeploymentHistoryEntry, error) {
	if len(history) > 0 && history[0].State().Running() {
		if err := advance(&history[0], v1alpha1.BakeCancelled, "superseded by "+Successor(in, d.Outcome), in); err != nil {
			return nil, err
		}
	}
	entry := newEntry(in, d.Outcome, history)
	if err := advance(&entry, firstState(in.Rollout, in.Targets), expectation(in, d.Release.Tag), in); err != nil {
		return nil, err
	}
	if entry.State() == v1alpha1.BakeSucceeded {
		entry.ProvenBy = &v1alpha1.Proof{}
	}
	return limit(append([]v1alpha1.DeploymentHistoryEntry{entry}, history...), in, d.Ledger), nil
}

// Successor returns the name of what replaces the current release.
func Successor(in Input, o Outcome) string {
	switch {
	case o.Reason == v1alpha1.TagMovedReason:
		return "other content of the same tag"
	case o.Release.Tag == in.Rollout.Current().Version.Tag:
		return "a newer promotion of it"
	}
	return o.Release.Tag
}

func newEntry(in Input, o Outcome, history []v1alpha1.DeploymentHistoryEntry) v1alpha1.DeploymentHistoryEntry {
	id := nextID(in.Now, in.Targets, history)
	message, by := entryMessage(in.Rollout, in.ForeignAnnotations, o), triggeredBy(in.Rollout, in.ForeignAnnotations, o)
	entry := v1alpha1.DeploymentHistoryEntry{
		ID:          &id,
		Version:     *o.Release.DeepCopy(),
		Image:       in.Policy.RecordedImage(),
		Timestamp:   metav1.NewTime(in.Now.Truncate(time.Second)),
		Grounds:     o.Grounds,
		Lifted:      o.Lifted,
		Message:     &message,
		TriggeredBy: &by,
		Rollback:    o.Back,
	}
	if o.Recovery != nil {
		entry.Recovery = v1alpha1.Recovery(o.Recovery.Reason)
	}
	if o.usesUpWords() {
		entry.RequestDigest = requestDigest(in.Rollout, in.ForeignAnnotations)
	}
	return entry
}

// triggeredBy returns the user who claims to have caused a manual promotion. For all
// other promotions it returns the controller.
func triggeredBy(rollout *v1alpha1.Rollout, foreign map[string]bool, o Outcome) v1alpha1.TriggeredBy {
	if user := words(rollout, foreign, v1alpha1.DeployUserAnnotation); o.Manual && user != "" {
		return v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredByUser, Name: truncate.Text(user, verdict.LongestName)}
	}
	return v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredBySystem, Name: SystemName}
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
func firstState(rollout *v1alpha1.Rollout, targets content.Targets) v1alpha1.BakeStatus {
	if !Protected(&rollout.Spec) && targets.Problem == nil && len(targets.All) == 0 {
		return v1alpha1.BakeSucceeded
	}
	return v1alpha1.BakeDeploying
}

// expectation describes what the new entry waits for.
func expectation(in Input, tag string) string {
	nothing := "no Flux object is annotated with this Rollout"
	targets, checks := len(in.Targets.All), verdict.Count(len(in.Health.Checks), "HealthCheck")
	switch {
	case firstState(in.Rollout, in.Targets) == v1alpha1.BakeSucceeded:
		return nothing + ": nothing to deploy"
	case targets == 0 && in.Targets.Problem == nil && len(in.Health.Checks) > 0:
		return nothing + "; waiting for " + checks
	case len(in.Health.Checks) > 0:
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
	retained := retainedEntries(in, history, ledger)
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
func retainedEntries(in Input, history []v1alpha1.DeploymentHistoryEntry, ledger []v1alpha1.VersionInfo) []bool {
	policy := in.Policy
	position := releases.PositionOf(ledger, history, policy).Tag
	candidates := releases.TagsOf(releases.Candidates(ledger, history, policy))
	if in.Rollout.Spec.RollsBack() {
		maps.Copy(candidates, releases.CandidatesAfterRollback(ledger, history, policy))
	}
	retained, reported := make([]bool, len(history)), map[string]bool{}
	for i := range history {
		tag := history[i].Version.Tag
		failed := history[i].State() == v1alpha1.BakeFailed && candidates[tag]
		retained[i] = i == 0 || !reported[tag] && (failed || tag == position || policy.Blocking)
		reported[tag] = true
	}
	if in.Rollout.Spec.RollsBack() {
		retainForRollback(in.Policy, in.holding(), history, ledger, retained)
	}
	return retained
}

// recordCause says in the history why a promotion has failed, and when a rollback answers
// it. A rollback itself never fails.
func recordCause(now time.Time, rollout *v1alpha1.Rollout, o Outcome, entry *v1alpha1.DeploymentHistoryEntry) {
	spec := &rollout.Spec
	if o.Action != FailBake {
		return
	}
	if entry.Cause = o.Cause; !spec.RollsBack() || !spec.Rollback.Answers(o.Cause) {
		return
	}
	due := verdict.WholeSecond(now)
	if delay := spec.Rollback.Delay; delay != nil {
		due = verdict.WholeSecond(due.Add(delay.Duration))
	}
	entry.RollbackDue = &metav1.Time{Time: due}
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
			entry.BakeStatusMessage = releases.OrNil(truncate.Text(bakeOf(in, entry).remaining(), verdict.LongestMessage))
		}
	}
}
