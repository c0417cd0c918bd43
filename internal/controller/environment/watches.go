// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"errors"
	"slices"

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

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/shard"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// SetupWithManager registers the watches. The indexes must exist, see [gather.Index] and
// [gather.IndexEnvironments].
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	on := handler.EnqueueRequestsFromMapFunc
	build := ctrl.NewControllerManagedBy(mgr)
	if r.Shard.AllRollouts != nil && r.Shard.TakesUnlabelled() {
		// The Environments of a Rollout of another instance may now have none.
		build = build.WatchesRawSource(source.Kind[client.Object](r.Shard.AllRollouts, &v1alpha1.Rollout{}, on(r.environmentsOfRollout), shard.OnlyDeleted()))
	}
	if r.Reports != nil {
		build = build.WatchesRawSource(r.Reports.Environments())
	}
	if r.Publisher != nil {
		build = build.WatchesRawSource(r.Publisher.Source())
	}
	return build.
		Named("environment").
		For(&environmentsv1.Environment{}).
		Watches(&environmentsv1.Environment{}, on(r.environmentsConcerned), builder.WithPredicates(saysOtherwise())).
		Watches(&v1alpha1.Rollout{}, on(r.environmentsOfRollout), builder.WithPredicates(historyChanged())).
		Watches(&v1alpha1.HealthCheck{}, on(r.environmentsOfCheck), builder.WithPredicates(healthChanged())).
		WatchesMetadata(&corev1.Namespace{}, on(r.environmentsIn), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WithEventFilter(r.writes.ForgetGone()).
		WithOptions(options).
		Complete(r.Durations.Of(environmentsv1.EnvironmentKind, r, nil, func() client.Object { return &environmentsv1.Environment{} }))
}

// saysOtherwise passes an Environment if the environments after it read something else of
// it now.
func saysOtherwise() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*environmentsv1.Environment), e.ObjectNew.(*environmentsv1.Environment)
		return before.Generation != after.Generation ||
			before.Status.ObservedGeneration == 0 && after.Status.ObservedGeneration != 0 || environment.ReadyReason(before) != environment.ReadyReason(after) ||
			environment.InfosDigest(before) != environment.InfosDigest(after) ||
			!equality.Semantic.DeepEqual(before.Status.Releases, after.Status.Releases)
	}}
}

// historyChanged passes a Rollout if its spec or its history has changed.
func historyChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1alpha1.Rollout), e.ObjectNew.(*v1alpha1.Rollout)
		return before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Status.History, after.Status.History)
	}}
}

// healthChanged passes a HealthCheck if its health has changed, or which Rollouts may
// select it.
func healthChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{},
		predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*v1alpha1.HealthCheck).Status, e.ObjectNew.(*v1alpha1.HealthCheck).Status
			return before.Status != after.Status || !before.LastErrorTime.Equal(after.LastErrorTime)
		}})
}

// environmentsConcerned maps an Environment to those that name it as an upstream, and to those
// that cannot publish a report because of it.
func (r *Reconciler) environmentsConcerned(ctx context.Context, o client.Object) []reconcile.Request {
	e := o.(*environmentsv1.Environment)
	all, err := gather.EnvironmentsAfter(ctx, r.Client, e, unreadable.Left{})
	if e.Spec.Backend.Project != "" {
		others, err2 := gather.EnvironmentsOf(ctx, r.Client, client.ObjectKey{Namespace: e.Namespace, Name: e.Spec.RolloutRef.Name}, unreadable.Left{})
		all, err = slices.Concat(all, others), errors.Join(err, err2)
	}
	return r.requests(ctx, all, err)
}

// environmentsOfRollout maps a Rollout to its Environments.
func (r *Reconciler) environmentsOfRollout(ctx context.Context, rollout client.Object) []reconcile.Request {
	all, err := gather.EnvironmentsOf(ctx, r.Client, client.ObjectKeyFromObject(rollout), unreadable.Left{})
	return r.requests(ctx, all, err)
}

// environmentsOfCheck maps a HealthCheck to the Environments of the Rollouts that select
// it.
func (r *Reconciler) environmentsOfCheck(ctx context.Context, check client.Object) []reconcile.Request {
	rollouts, err := gather.RolloutsOfCheck(ctx, r.Client, check)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find the Rollouts of a HealthCheck")
	}
	var requests []reconcile.Request
	for _, rollout := range rollouts {
		requests = append(requests, r.environmentsOfRollout(ctx, rollout)...)
	}
	return requests
}

// environmentsIn maps a namespace to its Environments: its labels say whether upstreams
// elsewhere let it in.
func (r *Reconciler) environmentsIn(ctx context.Context, namespace client.Object) []reconcile.Request {
	list := &environmentsv1.EnvironmentList{}
	err := r.Client.List(ctx, list, client.InNamespace(namespace.GetName()), client.UnsafeDisableDeepCopy, unreadable.Left{})
	return r.requests(ctx, list.Items, err)
}

func (r *Reconciler) requests(ctx context.Context, all []environmentsv1.Environment, err error) []reconcile.Request {
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find the Environments that an event concerns")
	}
	var requests []reconcile.Request
	for i := range all {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all[i])})
	}
	return requests
}
