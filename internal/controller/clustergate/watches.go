// SPDX-License-Identifier: Apache-2.0

package clustergate

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
)

// SetupWithManager registers the watches. Only the existence and the labels of a Rollout matter.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	on, labels := handler.EnqueueRequestsFromMapFunc, predicate.LabelChangedPredicate{}
	rollouts := mgr.GetCache()
	if r.Shard.AllRollouts != nil {
		rollouts = r.Shard.AllRollouts
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("clusterrolloutgate").
		For(&v1alpha1.ClusterRolloutGate{}, builder.WithPredicates(r.Shard.Predicate())).
		WatchesRawSource(source.Kind[client.Object](rollouts, &v1alpha1.Rollout{}, on(r.gatesOfRollout), labels)).
		WatchesMetadata(&corev1.Namespace{}, on(r.gatesOfNamespace), builder.WithPredicates(labels)).
		WithEventFilter(r.writes.ForgetGone()).
		WithOptions(options).
		Complete(r.Durations.Of(v1alpha1.ClusterRolloutGateKind, r, r.Shard.Handles, func() client.Object { return &v1alpha1.ClusterRolloutGate{} }))
}

// gatesOfRollout maps a Rollout to the gates that select its labels, before or after a change
// of the labels.
func (r *Reconciler) gatesOfRollout(ctx context.Context, rollout client.Object) []reconcile.Request {
	return r.requests(ctx, func(gate *v1alpha1.ClusterRolloutGate) bool { return gather.GateSelectsRollout(gate, rollout) })
}

// gatesOfNamespace maps a namespace to the gates that select its labels.
func (r *Reconciler) gatesOfNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return r.requests(ctx, func(gate *v1alpha1.ClusterRolloutGate) bool {
		return gate.Spec.NamespaceSelector != nil && gather.GateSelectsNamespace(gate, namespace.GetLabels())
	})
}

func (r *Reconciler) requests(ctx context.Context, concerned func(*v1alpha1.ClusterRolloutGate) bool) []reconcile.Request {
	gates, err := gather.ClusterGates(ctx, r.Client)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list ClusterRolloutGates")
	}
	var requests []reconcile.Request
	for i := range gates {
		if r.Shard.Handles(&gates[i]) && concerned(&gates[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&gates[i])})
		}
	}
	return requests
}
