// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/rolloutstatus"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// transition is a fact that was just stored. It is logged, and emitted as a Kubernetes
// event, a Flux event, or both.
type transition struct {
	// reason of the Kubernetes event.
	reason string
	// eventType of the Kubernetes event; empty for none.
	eventType string
	// finer is a more precise reason for the Flux event, if any.
	finer string
	// severity of the Flux event; empty for none.
	severity string
	// message for users.
	message string
	// release that the transition is about; nil if there is none.
	release *v1alpha1.VersionInfo
	// metadata of the Flux event beyond the common metadata.
	metadata map[string]string
	// holds that the message names.
	holds []verdict.Hold
}

// announce logs and emits transitions after they are stored.
func (r *Reconciler) announce(ctx context.Context, rollout *v1alpha1.Rollout, s gather.Snapshot, emitted []transition) {
	for i := range emitted {
		emitted[i].message = truncate.Message(emitted[i].message)
		if t := emitted[i]; t.eventType != "" {
			announce.Event(ctx, r.Events, rollout, t.eventType, t.reason, t.message)
		} else {
			announce.Change(ctx, t.reason, t.message)
		}
	}
	notifier{r.Client, r.Notifications, r.Instance}.notify(ctx, rollout, s, emitted)
}

// transitions returns all that the decision caused, in the order in which they are
// reported. The culprits are those that the status named before.
func transitions(rollout *v1alpha1.Rollout, in promotion.Input, d promotion.Decision, before culprits) []transition {
	changed := changedConditions(rollout, in, d, before)
	return slices.Concat(detected(in, d, changed), noted(d), outcomes(rollout, in, d), lostConsumers(in), changed, awaits(rollout, in, d))
}

// detected reports all new candidates in one transition, with the hold of the newest one
// unless another transition reports that. It emits no Kubernetes event: the promotion or
// the hold has one.
func detected(in promotion.Input, d promotion.Decision, reported []transition) []transition {
	var tags []string
	before, after := releases.TagsOf(in.Rollout.Status.AvailableReleases), releases.TagsOf(d.Ledger)
	for _, candidate := range d.Candidates {
		if tag := candidate.Release.Tag; after[tag] && !before[tag] {
			tags = append(tags, tag)
		}
	}
	if len(tags) == 0 {
		return nil
	}
	newest := d.Candidates[slices.IndexFunc(d.Candidates, func(v promotion.Verdict) bool { return v.Release.Tag == tags[0] })]
	message := "release " + tags[0] + " was detected"
	if older := len(tags) - 1; older > 0 {
		message += fmt.Sprintf(", and %s before it", verdict.Count(older, "release"))
	}
	if !newest.Eligible() && !d.Action.Promotes() && !reports(reported, newest.Holds[0]) {
		message += "; " + verdict.Waiting("it", newest.Holds[0].Message)
	}
	return []transition{{
		reason: v1alpha1.ReleaseDetectedReason, severity: eventv1.EventSeverityInfo, message: message, release: &newest.Release,
	}}
}

// reports says whether one of the transitions names the hold.
func reports(reported []transition, hold verdict.Hold) bool {
	return slices.ContainsFunc(reported, func(t transition) bool { return slices.Contains(t.holds, hold) })
}

func noted(d promotion.Decision) []transition {
	var all []transition
	for _, note := range d.Notes {
		all = append(all, transition{
			reason: note.Reason, eventType: corev1.EventTypeWarning, severity: severityOf(note.Reason), message: note.Message,
		})
	}
	return all
}

// awaits asks once for the approvals of what a user has chosen.
func awaits(rollout *v1alpha1.Rollout, in promotion.Input, d promotion.Decision) []transition {
	was := apimeta.FindStatusCondition(in.Rollout.Status.Conditions, v1alpha1.ReconcilingCondition)
	now := apimeta.FindStatusCondition(rollout.Status.Conditions, v1alpha1.ReconcilingCondition)
	if d.Awaited == nil || now == nil || now.Reason != d.Awaited.Holds[0].Reason || was != nil && was.Reason == now.Reason && was.ObservedGeneration == now.ObservedGeneration {
		return nil
	}
	t := ofCondition(rollout, in, now)
	t.eventType, t.release = corev1.EventTypeWarning, &d.Awaited.Release
	t.ask(rollout, in, now.Reason)
	return []transition{t}
}

// ask says which gates hold the release of the transition, and by which command a user
// approves it.
func (t *transition) ask(rollout *v1alpha1.Rollout, in promotion.Input, reason string) {
	t.metadata[metaTo] = t.release.Tag
	t.metadata[metaGate] = truncate.List(promotion.Blocking(in, reason, *t.release))
	if reason == v1alpha1.ApprovalRequiredReason {
		t.metadata[metaCommand] = approveCommand(rollout, t.release.Tag)
	}
}

// lostConsumers reports OCIRepositories that nothing is known to apply any more.
func lostConsumers(in promotion.Input) []transition {
	var all []transition
	for _, t := range in.Content().LostConsumers() {
		all = append(all, transition{
			reason: v1alpha1.ConsumerLostReason, eventType: corev1.EventTypeWarning, severity: severityOf(v1alpha1.ConsumerLostReason),
			message: t.String() + " has lost the last Kustomization or HelmRelease that applied it: a release counts as applied once Flux has pulled it",
			release: &in.Rollout.Current().Version,
		})
	}
	return all
}

// outcomes reports the history entry that the decision added or changed.
func outcomes(rollout *v1alpha1.Rollout, in promotion.Input, d promotion.Decision) []transition {
	current := rollout.Current()
	switch d.Action {
	case promotion.Promote, promotion.Supersede, promotion.Adopt:
		return append(append(cancelled(rollout, in, d), approvedBy(rollout)...), promotedBy(rollout, in, d))
	case promotion.StartBake, promotion.FinishBake, promotion.Retry:
		return []transition{ofEntry(rollout, d.Reason, current.Version.Tag+": "+d.Message)}
	case promotion.FailBake:
		in.Rollout = rollout
		failed := ofEntry(rollout, d.Reason, rolloutstatus.Failure(in, d.Message))
		failed.eventType = corev1.EventTypeWarning
		return []transition{failed}
	case promotion.Nothing, promotion.Wait:
	}
	return nil
}

func cancelled(rollout *v1alpha1.Rollout, in promotion.Input, d promotion.Decision) []transition {
	if d.Action != promotion.Supersede {
		return nil
	}
	t := ofEntry(rollout, v1alpha1.BakeTimeCancelledReason,
		fmt.Sprintf("%s was superseded by %s", in.Rollout.Current().Version.Tag, promotion.Successor(in.Rollout.Current(), d.Outcome)))
	t.release = &in.Rollout.Current().Version
	return []transition{t}
}

// promotedBy reports a promotion. Only the reason of the Flux event shows whether a user
// chose it or it is a rollback: other clients of this API read the reason of the
// Kubernetes event.
func promotedBy(rollout *v1alpha1.Rollout, in promotion.Input, d promotion.Decision) transition {
	current := rollout.Current()
	verb, t := "promoted", ofEntry(rollout, v1alpha1.BakeTimeDeployingReason, "")
	switch {
	case d.Action == promotion.Adopt:
		t.reason = v1alpha1.ReleaseAdoptedReason
	case d.Backward(in):
		verb, t.finer = "rolled back to", v1alpha1.RolledBackReason
	case d.Back != nil:
		verb, t.finer, t.severity = "rolled back to", v1alpha1.RolledBackReason, severityOf(v1alpha1.BakeTimeFailedReason)
		t.metadata[metaCause] = string(in.Rollout.Current().Cause)
		t.metadata[metaQuarantine] = quarantineAt(rollout, 1)
	case d.Manual:
		t.finer = d.Reason
	case d.Reason == v1alpha1.TagMovedReason:
		verb, t.reason, t.eventType, t.severity = "recorded again", d.Reason, corev1.EventTypeWarning, severityOf(d.Reason)
	}
	t.message = fmt.Sprintf("%s %s (%s); %s", verb, current.Version.Tag, d.Message, *current.BakeStatusMessage)
	return t
}

// ofEntry reports on the newest history entry: the version before it, its ID and who
// caused it.
func ofEntry(rollout *v1alpha1.Rollout, reason, message string) transition {
	current := rollout.Current()
	metadata := map[string]string{}
	if current.ID != nil {
		metadata[metaDeployment] = fmt.Sprint(*current.ID)
	}
	if current.TriggeredBy != nil {
		metadata[metaActor] = current.TriggeredBy.Name
	}
	if len(rollout.Status.History) > 1 {
		metadata[metaFrom] = rollout.Status.History[1].Version.Tag
	}
	metadata[metaTo] = current.Version.Tag
	return transition{
		reason: reason, eventType: corev1.EventTypeNormal, severity: severityOf(reason), message: message,
		release: &current.Version, metadata: metadata,
	}
}

// alarms contains the condition states that are emitted as a Warning when they begin.
var alarms = map[string]metav1.ConditionStatus{
	v1alpha1.ReleasesUpdatedCondition:   metav1.ConditionFalse,
	v1alpha1.GatesPassingCondition:      metav1.ConditionFalse,
	v1alpha1.DeploymentBlockedCondition: metav1.ConditionTrue,
	v1alpha1.RequestAcceptedCondition:   metav1.ConditionFalse,
	v1alpha1.TargetsAppliedCondition:    metav1.ConditionFalse,
	v1alpha1.StalledCondition:           metav1.ConditionTrue,
	v1alpha1.RolledBackCondition:        metav1.ConditionFalse,
	v1alpha1.RunsUnapprovedCondition:    metav1.ConditionTrue,

	environmentsv1.UpstreamWithdrewCondition: metav1.ConditionTrue,
}

// changedConditions reports problems that have begun or have another reason now, and
// gates that let candidates through again.
func changedConditions(rollout *v1alpha1.Rollout, in promotion.Input, d promotion.Decision, before culprits) []transition {
	var all []transition
	others := func(reason string) bool { return before.differ(culpritsOf(in), reason) }
	for i := range rollout.Status.Conditions {
		now := &rollout.Status.Conditions[i]
		was := apimeta.FindStatusCondition(in.Rollout.Status.Conditions, now.Type)
		if needsNoEvent(now, d) {
			continue
		}
		if eventType, reported := eventTypeOf(was, now, others); reported {
			t := ofCondition(rollout, in, now)
			t.eventType, t.holds = eventType, holdsIn(now, d)
			all = append(all, t)
		}
	}
	return all
}

// holdsIn returns the holds that the message of a condition names.
func holdsIn(c *metav1.Condition, d promotion.Decision) []verdict.Hold {
	considered := promotion.Considered(d.Candidates)
	if c.Type != v1alpha1.GatesPassingCondition || c.Status != metav1.ConditionFalse || len(considered) == 0 {
		return nil
	}
	return rolloutstatus.GateHolds(considered[0])
}

// eventTypeOf reports whether a condition is worth an event, and by which type of Kubernetes
// event. A change of only the culprits is worth a Flux event.
func eventTypeOf(was, now *metav1.Condition, others func(reason string) bool) (eventType string, reported bool) {
	switch same := was != nil && was.Status == now.Status && eventReason(was) == eventReason(now); {
	case same:
		return "", others(now.Reason)
	case now.Status == alarms[now.Type] || now.Status == metav1.ConditionUnknown, now.Reason == v1alpha1.BakeOverdueReason:
		return corev1.EventTypeWarning, true
	case now.Reason == v1alpha1.GatesBypassedReason, now.Reason == v1alpha1.FloatingTagReason,
		now.Reason == v1alpha1.AllGatesPassingReason && was != nil && was.Status == metav1.ConditionFalse:
		return corev1.EventTypeNormal, true
	}
	return "", false
}

// noRollback contains the reasons for which a failure that is to be answered by a rollback
// is not.
var noRollback = map[string]bool{
	v1alpha1.NoProvenReleaseReason: true, v1alpha1.BelowRollbackFloorReason: true,
	v1alpha1.RollbackBarrierReason: true, v1alpha1.RollbackBarrierUnknownReason: true,
}

func ofCondition(rollout *v1alpha1.Rollout, in promotion.Input, c *metav1.Condition) transition {
	t := transition{reason: eventReason(c), message: c.Message, severity: severityOf(eventReason(c)), metadata: map[string]string{}}
	if current := rollout.Current(); current != nil {
		t.release, t.metadata[metaFrom] = &current.Version, current.Version.Tag
	}
	switch c.Type {
	case v1alpha1.RequestAcceptedCondition:
		t.severity = "" // an answer for the user who asked
	case v1alpha1.GatesPassingCondition:
		t.about(rollout.Status.ReleaseCandidates)
		if t.metadata[metaTo] != "" {
			t.ask(rollout, in, c.Reason)
		}
	case v1alpha1.DeploymentBlockedCondition:
		t.about(rollout.Status.ReleaseCandidates)
	case v1alpha1.TargetsAppliedCondition, environmentsv1.UpstreamWithdrewCondition:
		t.metadata[metaTo] = t.metadata[metaFrom]
		delete(t.metadata, metaFrom)
	case v1alpha1.RolledBackCondition: // it is False: the newest entry has failed
		t.metadata[metaQuarantine] = quarantineAt(rollout, 0)
	case v1alpha1.StalledCondition:
		if c.Reason == v1alpha1.RollbackOverdueReason {
			t.metadata[metaQuarantine] = quarantineAt(rollout, 1)
		}
	}
	return t
}

// quarantineAt returns the quarantine to which the failure of a history entry was reported.
// It is empty if it was not, or not yet: a rollback does not wait for that.
func quarantineAt(rollout *v1alpha1.Rollout, i int) string {
	if i >= len(rollout.Status.History) {
		return ""
	}
	return rollout.Status.History[i].Quarantine
}

// about makes the newest candidate the release of the transition.
func (t *transition) about(candidates []v1alpha1.ReleaseCandidate) {
	if len(candidates) > 0 {
		t.release, t.metadata[metaTo] = &candidates[0].VersionInfo, candidates[0].Tag
	}
}

// errorReasons contains the reasons that should alert a user. Waiting for a gate, a
// schedule or a registry is not among them: nobody wants to be paged because it is night.
var errorReasons = map[string]bool{
	v1alpha1.BakeTimeFailedReason:       true,
	v1alpha1.HealthCheckBlockingReason:  true,
	v1alpha1.TargetFailedReason:         true,
	v1alpha1.TargetConflictReason:       true,
	v1alpha1.DigestMismatchReason:       true,
	v1alpha1.TagMovedReason:             true,
	v1alpha1.TargetsDisagreeReason:      true,
	v1alpha1.HistoryOutdatedReason:      true,
	v1alpha1.FirstReleaseUnknownReason:  true,
	v1alpha1.NotPromotedReason:          true,
	v1alpha1.InvalidScheduleReason:      true,
	v1alpha1.InvalidSelectorReason:      true,
	v1alpha1.InvalidWantedVersionReason: true,
	v1alpha1.UnknownReleaseReason:       true,
	v1alpha1.AccessDeniedReason:         true,
	v1alpha1.InvalidImagePolicyReason:   true,
	v1alpha1.ImagePolicyNotFoundReason:  true,
	v1alpha1.RollbackOverdueReason:      true,
	v1alpha1.BakeOverdueReason:          true,
	v1alpha1.RollbackNotPossibleReason:  true,
	v1alpha1.OverriddenReason:           true,
	v1alpha1.RunsUnapprovedReason:       true,
	v1alpha1.QuarantinedReason:          true, // only of Stalled: a version that a user chose is not promoted

	environmentsv1.UpstreamWithdrewReason: true, // what runs here was found to be bad elsewhere
}

func severityOf(reason string) string {
	if errorReasons[reason] {
		return eventv1.EventSeverityError
	}
	return eventv1.EventSeverityInfo
}

// needsNoEvent reports whether a condition has no event of its own: waiting is no alarm, a failed
// bake has its own event with the HealthChecks, and a fact in two conditions is emitted
// once.
func needsNoEvent(c *metav1.Condition, d promotion.Decision) bool {
	if c.Type == v1alpha1.RolledBackCondition {
		return !noRollback[c.Reason] // a rollback has its own event, and so has one that is overdue
	}
	switch c.Reason {
	case v1alpha1.TargetsPendingReason, v1alpha1.BakeTimeFailedReason:
		return true
	case v1alpha1.TargetConflictReason, v1alpha1.DigestMismatchReason, v1alpha1.InvalidImagePolicyReason:
		return c.Type == v1alpha1.StalledCondition
	case v1alpha1.InvalidSelectorReason:
		return c.Type == v1alpha1.DeploymentBlockedCondition
	case v1alpha1.AccessDeniedReason, v1alpha1.HistoryOutdatedReason:
		return c.Type != v1alpha1.StalledCondition
	case v1alpha1.RetryNotNeededReason, v1alpha1.ForceDeployNotNeededReason, v1alpha1.UnblockNotNeededReason, v1alpha1.BypassNotNeededReason,
		v1alpha1.AdoptNotNeededReason,
		environmentsv1.PromoteNotNeededReason:
		return true // emitted for each request, once it is removed
	case v1alpha1.UnhealthyHealthChecksReason:
		return d.Action == promotion.FailBake
	}
	return d.Awaited != nil && verdict.IsOfApprovals(c.Reason) // asked for what a user has chosen, not for others
}

func eventReason(c *metav1.Condition) string {
	switch {
	case c.Reason == v1alpha1.UnhealthyHealthChecksReason:
		return v1alpha1.HealthCheckBlockingReason
	case noRollback[c.Reason]:
		return v1alpha1.RollbackNotPossibleReason
	}
	return c.Reason
}
