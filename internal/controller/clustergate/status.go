// SPDX-License-Identifier: Apache-2.0

package clustergate

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// record stores the status if it has changed.
func (r *Reconciler) record(ctx context.Context, gate *v1alpha1.ClusterRolloutGate, status v1alpha1.ClusterRolloutGateStatus, pass *announce.Pass) error {
	if equality.Semantic.DeepEqual(gate.Status, status) {
		return nil
	}
	next := gate.DeepCopy()
	next.Status = status
	written, err := write.PatchStatus(ctx, r.Client, client.Object(next), client.MergeFromWithOptions(gate, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("write the status of ClusterRolloutGate %s: %w", gate.Name, err)
	}
	r.writes.Wrote(written)
	pass.Stored(true)
	ready := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition)
	announce.Change(ctx, ready.Reason, ready.Message)
	return nil
}

// observe returns the status of a gate that selects some Rollouts. Ready and Stalled are set
// together, because kstatus reads them together.
func observe(gate *v1alpha1.ClusterRolloutGate, matching int, now time.Time) v1alpha1.ClusterRolloutGateStatus {
	status := *gate.Status.DeepCopy()
	status.ObservedGeneration, status.MatchingRollouts = gate.Generation, int32(matching)
	set := func(kind string, value metav1.ConditionStatus, reason, message string) {
		apimeta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: value, Reason: reason, Message: truncate.Message(message),
			ObservedGeneration: gate.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	if err := gather.InvalidGateSelector(gate); err != nil {
		message := "it selects everything: " + err.Error()
		set(v1alpha1.StalledCondition, metav1.ConditionTrue, v1alpha1.InvalidSelectorReason, message)
		set(v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.InvalidSelectorReason, message)
		return status
	}
	apimeta.RemoveStatusCondition(&status.Conditions, v1alpha1.StalledCondition)
	set(v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.RolloutsSelectedReason, "selects "+verdict.Count(matching, "Rollout"))
	return status
}
