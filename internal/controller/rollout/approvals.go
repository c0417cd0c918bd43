// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// +kubebuilder:rbac:groups=kuberik.com,resources=rolloutapprovals,verbs=get;list;watch
// +kubebuilder:rbac:groups=kuberik.com,resources=clusterrolloutgates,verbs=get;list;watch

// WatchApprovals makes the reconciler obey ClusterRolloutGates, and count approvals. The API
// server must serve both kinds, and their index must exist (gather.IndexApprovals). It may be
// called once, after SetupWithManager and before the manager starts.
func (r *Reconciler) WatchApprovals() error {
	if err := r.late.watch(&v1alpha1.RolloutApproval{}, rolloutOfApproval); err != nil {
		return fmt.Errorf("watch RolloutApprovals: %w", err)
	}
	if err := r.late.watch(&v1alpha1.ClusterRolloutGate{}, r.concerned().rolloutsOfClusterGate, predicate.GenerationChangedPredicate{}); err != nil {
		return fmt.Errorf("watch ClusterRolloutGates: %w", err)
	}
	r.late.approvals.Store(true)
	return nil
}

func rolloutOfApproval(_ context.Context, a client.Object) []reconcile.Request {
	return named(a, a.(*v1alpha1.RolloutApproval).Spec.RolloutRef.Name)
}

// rolloutsOfClusterGate maps a gate to the Rollouts that it may select.
func (c concerned) rolloutsOfClusterGate(ctx context.Context, gate client.Object) []reconcile.Request {
	rollouts, err := gather.RolloutsOfGate(ctx, c.reader, gate.(*v1alpha1.ClusterRolloutGate))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find the Rollouts of a ClusterRolloutGate")
	}
	return requestsFor(rollouts)
}

// confirmApprovals lists what people have said of the release past the cache, before it is
// promoted. If that holds it, the decision may be about another release, whose decisions are
// then listed too.
func (r *Reconciler) confirmApprovals(ctx context.Context, s *gather.Snapshot, d promotion.Decision) (promotion.Decision, error) {
	listed := map[string]bool{}
	for gather.AsksForApprovals(s.Gates) && d.Action.Promotes() && !listed[d.Release.Tag] {
		if err := r.gatherer().ConfirmApprovals(ctx, s, d.Release.Tag); err != nil {
			return d, err
		}
		listed[d.Release.Tag] = true
		d = promotion.Decide(s.Input)
	}
	return d, nil
}
