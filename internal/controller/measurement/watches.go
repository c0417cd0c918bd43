// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/shard"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// SetupWithManager indexes the HealthChecks by the Rollouts that have reset them, registers
// the watches, and lets the manager start the pool.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	if err := index(ctx, mgr.GetFieldIndexer(), r.Shard); err != nil {
		return err
	}
	if err := mgr.Add(r.Pool); err != nil {
		return fmt.Errorf("add the measurements: %w", err)
	}
	r.wake = r.woken.Wake
	measured := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.(*v1alpha1.HealthCheck).IsMeasured() || r.states.has(client.ObjectKeyFromObject(o))
	})
	on, build := handler.EnqueueRequestsFromMapFunc, ctrl.NewControllerManagedBy(mgr)
	if r.Shard.AllRollouts != nil {
		build = build.WatchesRawSource(source.Kind[client.Object](r.Shard.AllRollouts, &v1alpha1.Rollout{},
			on(r.checksOf), predicate.Or(predicate.LabelChangedPredicate{}, selectionChanged())))
	}
	return build.
		Named("measurement").
		For(&v1alpha1.HealthCheck{}, builder.WithPredicates(r.Shard.Predicate(), measured)).
		Watches(&v1alpha1.Rollout{}, on(r.checksOf), builder.WithPredicates(predicate.Or(promotionChanged(), selectionChanged()))).
		WatchesMetadata(&corev1.Namespace{}, on(r.checksOfNamespace), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WatchesRawSource(r.woken.Source()).
		WithEventFilter(r.writes.ForgetGone()).
		WithOptions(options).
		Complete(r.Durations.Of("HealthCheck", r, r.Shard.Handles, func() client.Object { return &v1alpha1.HealthCheck{} }))
}

func index(ctx context.Context, indexer client.FieldIndexer, own shard.Shard) error {
	of := []client.FieldIndexer{indexer}
	if own.AllRollouts != nil {
		of = append(of, own.AllRollouts)
	}
	for _, indexer := range of {
		if err := indexer.IndexField(ctx, &v1alpha1.Rollout{}, indexUID, rolloutUID); err != nil {
			return fmt.Errorf("index Rollouts by UID: %w", err)
		}
	}
	if err := indexer.IndexField(ctx, &v1alpha1.HealthCheck{}, indexReset, marksOf); err != nil {
		return fmt.Errorf("index HealthChecks by the Rollouts that have reset them: %w", err)
	}
	return nil
}

// promotionChanged passes a Rollout if its current promotion is another one, or has
// another state.
func promotionChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1alpha1.Rollout).Current(), e.ObjectNew.(*v1alpha1.Rollout).Current()
		if before == nil || after == nil {
			return before != after
		}
		return evidence.PromotionID(before) != evidence.PromotionID(after) || before.State() != after.State() ||
			!equality.Semantic.DeepEqual(before.Version, after.Version)
	}}
}

// selectionChanged passes a Rollout if it selects other HealthChecks.
func selectionChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1alpha1.Rollout), e.ObjectNew.(*v1alpha1.Rollout)
		return !equality.Semantic.DeepEqual(before.Spec.HealthCheckSelector, after.Spec.HealthCheckSelector)
	}}
}

// checksOfNamespace maps a namespace to the HealthChecks in it, and to those that its
// Rollouts have reset: its labels decide who selects whom.
func (r *Reconciler) checksOfNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	within := client.InNamespace(namespace.GetName())
	checks, rollouts := &v1alpha1.HealthCheckList{}, &v1alpha1.RolloutList{}
	err := errors.Join(r.Client.List(ctx, checks, within, client.UnsafeDisableDeepCopy, unreadable.Left{}),
		r.Shard.Rollouts(r.Client).List(ctx, rollouts, within, client.UnsafeDisableDeepCopy, unreadable.Left{}))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find the HealthChecks whose selection the labels of a namespace may have changed")
	}
	requests := requestsFor(checks)
	for i := range rollouts.Items {
		requests = append(requests, r.checksOf(ctx, &rollouts.Items[i])...)
	}
	return requests
}

// checksOf maps a Rollout to the HealthChecks that it has reset.
func (r *Reconciler) checksOf(ctx context.Context, rollout client.Object) []reconcile.Request {
	list := &v1alpha1.HealthCheckList{}
	err := r.Client.List(ctx, list, client.MatchingFields{indexReset: string(rollout.GetUID())}, client.UnsafeDisableDeepCopy, unreadable.Left{})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find the HealthChecks that a Rollout has reset")
	}
	return requestsFor(list)
}

func requestsFor(checks *v1alpha1.HealthCheckList) []reconcile.Request {
	var requests []reconcile.Request
	for i := range checks.Items {
		if checks.Items[i].IsMeasured() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&checks.Items[i])})
		}
	}
	return requests
}
