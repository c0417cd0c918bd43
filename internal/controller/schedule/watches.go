// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
)

// gateOwnerIndex finds gates by the UID of the schedule that maintains them.
const gateOwnerIndex = fieldindex.Everywhere + ".metadata.ownerReferences.controller"

// gateNameIndex finds gates by the schedule that their labels name, also where that one is gone.
const gateNameIndex = fieldindex.Everywhere + ".metadata.labels.schedule"

// IndexGatesByOwner registers the indexes by which schedules find their gates. Both kinds
// share them.
func IndexGatesByOwner(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &v1alpha1.RolloutGate{}, gateOwnerIndex, func(o client.Object) []string {
		return []string{string(gather.OwnerOf(o))}
	}); err != nil {
		return fmt.Errorf("index RolloutGates by owner: %w", err)
	}
	if err := indexer.IndexField(ctx, &v1alpha1.RolloutGate{}, gateNameIndex, namesOfGate); err != nil {
		return fmt.Errorf("index RolloutGates by schedule: %w", err)
	}
	return nil
}

// SetupWithManager registers the watches. The index must exist, see [IndexGatesByOwner].
// Only the existence and the labels of a Rollout matter.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	on := handler.EnqueueRequestsFromMapFunc
	labels := builder.WithPredicates(predicate.LabelChangedPredicate{})
	b := ctrl.NewControllerManagedBy(mgr).
		For(r.kind(), builder.WithPredicates(r.Shard.Predicate())).
		Watches(&v1alpha1.RolloutGate{}, on(r.scheduleOfGate)).
		WithEventFilter(r.writes.ForgetGone()).
		WithOptions(options)
	if r.Shard.AllRollouts != nil {
		b = b.WatchesRawSource(source.Kind[client.Object](r.Shard.AllRollouts, &v1alpha1.Rollout{},
			on(r.schedulesOfRollout), predicate.LabelChangedPredicate{}))
	} else {
		b = b.Watches(&v1alpha1.Rollout{}, on(r.schedulesOfRollout), labels)
	}
	if r.Cluster {
		return b.Named("clusterrolloutschedule").
			WatchesMetadata(&corev1.Namespace{}, on(r.schedulesOfNamespace), labels).
			Complete(r.Durations.Of("ClusterRolloutSchedule", r, r.Shard.Handles, r.kind))
	}
	return b.Named("rolloutschedule").Complete(r.Durations.Of("RolloutSchedule", r, r.Shard.Handles, r.kind))
}

// scheduleOfGate maps a gate to the schedule that maintains it, if this instance handles
// that, or to the one that left it behind.
func (r *Reconciler) scheduleOfGate(ctx context.Context, gate client.Object) []reconcile.Request {
	owner, o := metav1.GetControllerOf(gate), r.kind()
	if owner == nil {
		return r.scheduleNamedBy(ctx, gate)
	}
	if owner.Kind != gather.ScheduleOf(o).Kind {
		return nil
	}
	key := types.NamespacedName{Name: owner.Name}
	if !r.Cluster {
		key.Namespace = gate.GetNamespace()
	}
	err := r.Client.Get(ctx, key, o)
	if client.IgnoreNotFound(err) != nil {
		ctrl.LoggerFrom(ctx).Error(err, "read the schedule of a gate", "gate", client.ObjectKeyFromObject(gate))
	}
	if err != nil || !r.Shard.Handles(o) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// schedulesOfRollout maps a Rollout to the schedules that select its labels, before or
// after a change of the labels.
func (r *Reconciler) schedulesOfRollout(ctx context.Context, rollout client.Object) []reconcile.Request {
	return r.requests(ctx, rollout.GetNamespace(), func(s gather.Schedule) bool {
		return s.SelectsRollout(rollout)
	})
}

// schedulesOfNamespace maps a namespace to the schedules that select its labels, before
// or after a change of the labels.
func (r *Reconciler) schedulesOfNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return r.requests(ctx, "", func(s gather.Schedule) bool {
		return s.Namespaces != nil && s.SelectsNamespace(namespace.GetLabels())
	})
}

func (r *Reconciler) requests(ctx context.Context, namespace string, concerned func(gather.Schedule) bool) []reconcile.Request {
	schedules, err := gather.ClusterSchedules(ctx, r.Client)
	if !r.Cluster {
		schedules, err = gather.SchedulesIn(ctx, r.Client, namespace)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list schedules")
	}
	var requests []reconcile.Request
	for _, s := range schedules {
		if r.Shard.Handles(s) && concerned(s) {
			key := types.NamespacedName{Namespace: s.GetNamespace(), Name: s.GetName()}
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}
