// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// announce sends one event for each transition that was just stored.
func (r *RolloutReconciler) announce(rollout *v1alpha1.Rollout, in promotion.Input, d promotion.Decision) {
	before := &in.Rollout.Status
	for _, note := range d.Notes {
		r.Events.Event(rollout, corev1.EventTypeWarning, note.Reason, note.Message)
	}
	r.announceOutcome(rollout, before, d)
	r.announceConditions(rollout, before, d)
}

// announceOutcome tells of the history entry that the decision made or moved.
func (r *RolloutReconciler) announceOutcome(rollout *v1alpha1.Rollout, before *v1alpha1.RolloutStatus, d promotion.Decision) {
	current := rollout.Current()
	switch d.Action {
	case promotion.Promote, promotion.Supersede, promotion.Adopt:
		if d.Action == promotion.Supersede {
			r.Events.Eventf(rollout, corev1.EventTypeNormal, v1alpha1.BakeTimeCancelledReason,
				"%s was superseded by %s", before.History[0].Version.Tag, current.Version.Tag)
		}
		r.Events.Event(rollout, corev1.EventTypeNormal, promotedReason(d), fmt.Sprintf("promoted %s (%s); %s",
			current.Version.Tag, d.Message, *current.BakeStatusMessage))
	case promotion.StartBake, promotion.FinishBake:
		r.Events.Event(rollout, corev1.EventTypeNormal, d.Reason, current.Version.Tag+": "+d.Message)
	case promotion.Retry:
		r.Events.Event(rollout, corev1.EventTypeNormal, d.Reason, current.Version.Tag+": "+d.Message)
	case promotion.FailBake:
		r.Events.Event(rollout, corev1.EventTypeWarning, d.Reason, current.Version.Tag+": "+d.Message)
	case promotion.Nothing, promotion.Wait:
	}
}

func promotedReason(d promotion.Decision) string {
	if d.Action == promotion.Adopt {
		return v1alpha1.ReleaseAdoptedReason
	}
	return v1alpha1.BakeTimeDeployingReason
}

// alarms are the condition states that are told as a Warning when they begin.
var alarms = map[string]metav1.ConditionStatus{
	v1alpha1.ReleasesUpdatedCondition:   metav1.ConditionFalse,
	v1alpha1.GatesPassingCondition:      metav1.ConditionFalse,
	v1alpha1.DeploymentBlockedCondition: metav1.ConditionTrue,
	v1alpha1.RequestAcceptedCondition:   metav1.ConditionFalse,
	v1alpha1.TargetsAppliedCondition:    metav1.ConditionFalse,
	v1alpha1.StalledCondition:           metav1.ConditionTrue,
}

// announceConditions tells of what has begun to be wrong, or is wrong for
// another reason now, and of gates that let candidates through again.
func (r *RolloutReconciler) announceConditions(rollout *v1alpha1.Rollout, before *v1alpha1.RolloutStatus, d promotion.Decision) {
	for i := range rollout.Status.Conditions {
		now := &rollout.Status.Conditions[i]
		was := apimeta.FindStatusCondition(before.Conditions, now.Type)
		same := was != nil && was.Status == now.Status && was.Reason == now.Reason
		switch {
		case same || toldElsewhere(now, d):
		case now.Status == alarms[now.Type] || now.Status == metav1.ConditionUnknown:
			r.Events.Event(rollout, corev1.EventTypeWarning, eventReason(now), now.Message)
		case now.Reason == v1alpha1.GatesBypassedReason,
			now.Reason == v1alpha1.AllGatesPassingReason && was != nil && was.Status == metav1.ConditionFalse:
			r.Events.Event(rollout, corev1.EventTypeNormal, now.Reason, now.Message)
		}
	}
}

// toldElsewhere: waiting is no alarm, a failed bake has an event of its own
// that names the HealthChecks, and what shows in two conditions is told once.
func toldElsewhere(c *metav1.Condition, d promotion.Decision) bool {
	switch c.Reason {
	case v1alpha1.TargetsPendingReason, v1alpha1.BakeTimeFailedReason:
		return true
	case v1alpha1.TargetConflictReason, v1alpha1.InvalidImagePolicyReason:
		return c.Type == v1alpha1.StalledCondition
	case v1alpha1.InvalidSelectorReason:
		return c.Type == v1alpha1.DeploymentBlockedCondition
	case v1alpha1.RetryNotNeededReason, v1alpha1.ForceDeployNotNeededReason, v1alpha1.UnblockNotNeededReason, v1alpha1.BypassNotNeededReason:
		return true // as often as they are asked, once the request is removed
	case v1alpha1.UnhealthyHealthChecksReason:
		return d.Action == promotion.FailBake
	}
	return false
}

func eventReason(c *metav1.Condition) string {
	if c.Reason == v1alpha1.UnhealthyHealthChecksReason {
		return v1alpha1.HealthCheckBlockingReason
	}
	return c.Reason
}
