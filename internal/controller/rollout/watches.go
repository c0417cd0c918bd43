// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/fluxrollouts/rollout-controller/internal/flux/imagepolicy"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
	"github.com/fluxrollouts/rollout-controller/internal/shard"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// policyIndex finds Rollouts by their ImagePolicy.
const policyIndex = ".spec.releasesImagePolicy.name"

// SetupWithManager registers the indexes and the watches. Every input of a decision is
// watched, and an index maps it to exactly the Rollouts that it concerns.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	if err := index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	r.started = &kustomization.Checker{Objects: r.Objects, Mapper: mgr.GetRESTMapper(), Now: r.Now}
	on, c := handler.EnqueueRequestsFromMapFunc, r.concerned()
	build := ctrl.NewControllerManagedBy(mgr).WithEventFilter(r.writes.ForgetGone())
	if r.Metadata != nil {
		if err := mgr.Add(r.Metadata); err != nil {
			return fmt.Errorf("add the metadata store: %w", err)
		}
		build = build.WatchesRawSource(r.Metadata.Source())
	}
	if r.Reports != nil {
		build = build.WatchesRawSource(r.Reports.Rollouts())
	}
	if r.Shard.AllRollouts != nil && r.Shard.TakesUnlabelled() {
		// Objects that named a Rollout of another instance may now name none.
		build = build.WatchesRawSource(source.Kind[client.Object](r.Shard.AllRollouts, &v1alpha1.Rollout{},
			&handler.EnqueueRequestForObject{}, shard.OnlyDeleted()))
	}
	built, err := build.
		WatchesRawSource(r.wakeups.Source()).
		Named("rollout").
		For(&v1alpha1.Rollout{}).
		Watches(&imagev1.ImagePolicy{}, on(c.rolloutsOfPolicy), builder.WithPredicates(contentChanged())).
		Watches(&imagev1.ImageRepository{}, on(c.rolloutsOfRepository), builder.WithPredicates(scanChanged())).
		Watches(&sourcev1.OCIRepository{}, on(c.rolloutsOfSource), builder.WithPredicates(contentChanged())).
		Watches(&kustomizev1.Kustomization{}, on(c.rolloutsOfConsumer), builder.WithPredicates(contentChanged())).
		Watches(&kustomizev1.Kustomization{}, on(c.rolloutsOfSourceElsewhere), builder.WithPredicates(consumptionChanged())).
		Watches(&v1alpha1.RolloutGate{}, on(rolloutOfGate)).
		Watches(&v1alpha1.HealthCheck{}, on(c.rolloutsOfCheck), builder.WithPredicates(r.marks.forgetGone())).
		Watches(&v1alpha1.RolloutSchedule{}, on(c.rolloutsOfSchedule), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.ClusterRolloutSchedule{}, on(c.rolloutsOfSchedule), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(&corev1.Namespace{}, on(c.rolloutsOfNamespace), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WithOptions(options).
		Build(r.Durations.Of(v1alpha1.RolloutKind, r, nil, func() client.Object { return &v1alpha1.Rollout{} }))
	if err != nil {
		return err
	}
	r.late.cache, r.late.add = mgr.GetCache(), built.Watch
	return nil
}

// index adds the indexes of what is gathered, and of what the watches look up.
func index(ctx context.Context, indexer client.FieldIndexer) error {
	if err := gather.Index(ctx, indexer); err != nil {
		return err
	}
	err := indexer.IndexField(ctx, &v1alpha1.Rollout{}, policyIndex, func(o client.Object) []string {
		return []string{o.(*v1alpha1.Rollout).Spec.ReleasesImagePolicy.Name}
	})
	if err != nil {
		return fmt.Errorf("index Rollouts by ImagePolicy: %w", err)
	}
	return nil
}

// contentChanged passes an object if a field has changed that the caches keep. No other
// field is read. Data that Flux records in every run, such as the time, wakes no Rollout.
// The generation shows changes that were undone while the watch was interrupted.
func contentChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := shallow(e.ObjectOld), e.ObjectNew
		before.SetResourceVersion(after.GetResourceVersion())
		return !equality.Semantic.DeepEqual(before, after)
	}}
}

// shallow returns a copy. Only its own fields may be set, and nothing below them.
func shallow(o client.Object) client.Object {
	copied := reflect.New(reflect.TypeOf(o).Elem())
	copied.Elem().Set(reflect.ValueOf(o).Elem())
	return copied.Interface().(client.Object)
}

// scanChanged passes an ImageRepository if its spec, its tags or its failure message have
// changed, and not for each scan with the same result.
func scanChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*imagev1.ImageRepository), e.ObjectNew.(*imagev1.ImageRepository)
		return before.Generation != after.Generation ||
			scanRevision(before) != scanRevision(after) || readyMessage(before) != readyMessage(after)
	}}
}

// scanRevision changes when a scan finds other tags. Flux provides it since 2.7. For
// older versions it is built from the tags that the scan shows.
func scanRevision(r *imagev1.ImageRepository) string {
	scan := r.Status.LastScanResult
	switch {
	case scan == nil:
		return ""
	case scan.Revision != "":
		return scan.Revision
	}
	return fmt.Sprintf("%d tags: %s", scan.TagCount, strings.Join(scan.LatestTags, " "))
}

func readyMessage(r *imagev1.ImageRepository) string {
	for _, c := range r.Status.Conditions {
		if c.Type == v1alpha1.ReadyCondition && c.Status == metav1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// concerned finds the Rollouts that an event concerns.
type concerned struct {
	reader client.Reader
	late   *lateWatches

	noCrossNamespaceRefs, quarantinesEverywhere bool
}

func (r *Reconciler) concerned() concerned {
	return concerned{r.Client, &r.late, r.NoCrossNamespaceRefs, r.QuarantinesEverywhere}
}

func (c concerned) rolloutsOfPolicy(ctx context.Context, policy client.Object) []reconcile.Request {
	return c.listRollouts(ctx, client.InNamespace(policy.GetNamespace()), client.MatchingFields{policyIndex: policy.GetName()})
}

func (c concerned) rolloutsOfRepository(ctx context.Context, repository client.Object) []reconcile.Request {
	policies := &imagev1.ImagePolicyList{}
	key := client.ObjectKeyFromObject(repository).String()
	if err := c.reader.List(ctx, policies, client.MatchingFields{imagepolicy.RepositoryIndex: key}, client.UnsafeDisableDeepCopy, unreadable.Left{}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list ImagePolicies of an ImageRepository")
		return nil
	}
	var requests []reconcile.Request
	for i := range policies.Items {
		requests = append(requests, c.rolloutsOfPolicy(ctx, &policies.Items[i])...)
	}
	return requests
}

// rolloutsOfSource maps a Repository to the Rollout that it names, and to the Rollouts of the
// Kustomizations and HelmReleases that consume it, in its namespace or in another.
func (c concerned) rolloutsOfSource(ctx context.Context, source client.Object) []reconcile.Request {
	requests := named(source, targets.RolloutOf(source))
	key := targets.RefTo(source.(targets.Repository)).String()
	return slices.Concat(requests,
		c.rolloutsOfConsumers(ctx, client.InNamespace(source.GetNamespace()), client.MatchingFields{targets.SourceIndex: key}),
		c.rolloutsOfConsumers(ctx, client.MatchingFields{targets.ForeignSourceIndex: key}),
		c.rolloutsOfCharts(ctx, source, key))
}

func (c concerned) rolloutsOfConsumers(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	consumers := &kustomizev1.KustomizationList{}
	if err := c.reader.List(ctx, consumers, append(options, client.UnsafeDisableDeepCopy, unreadable.Left{})...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list Kustomizations of a source")
	}
	var requests []reconcile.Request
	for i := range consumers.Items {
		requests = append(requests, named(&consumers.Items[i], targets.RolloutsOf(&consumers.Items[i])...)...)
	}
	return requests
}

func rolloutOfGate(_ context.Context, gate client.Object) []reconcile.Request {
	return named(gate, gate.(*v1alpha1.RolloutGate).RolloutName())
}

// rolloutsOfNamespace maps a namespace to the Rollouts in it, which schedules may select
// by its labels, and to all Rollouts that select HealthChecks by namespace.
func (c concerned) rolloutsOfNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return append(c.listRollouts(ctx, client.InNamespace(namespace.GetName())),
		c.listRollouts(ctx, gather.AcrossNamespaces)...)
}

// rolloutsOfCheck maps a HealthCheck to the Rollouts that select its labels.
func (c concerned) rolloutsOfCheck(ctx context.Context, check client.Object) []reconcile.Request {
	rollouts, err := gather.RolloutsOfCheck(ctx, c.reader, check)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find the Rollouts of a HealthCheck")
	}
	return requestsFor(rollouts)
}

// rolloutsOfSchedule maps a schedule to the Rollouts that it may select.
func (c concerned) rolloutsOfSchedule(ctx context.Context, o client.Object) []reconcile.Request {
	rollouts, err := gather.RolloutsOfSchedule(ctx, c.reader, gather.ScheduleOf(o))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find the Rollouts of a schedule")
	}
	return requestsFor(rollouts)
}

func requestsFor(rollouts []*v1alpha1.Rollout) []reconcile.Request {
	var requests []reconcile.Request
	for _, rollout := range rollouts {
		requests = append(requests, named(rollout, rollout.Name)...)
	}
	return requests
}

func (c concerned) listRollouts(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	list := &v1alpha1.RolloutList{}
	if err := c.reader.List(ctx, list, append(options, client.UnsafeDisableDeepCopy, unreadable.Left{})...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list Rollouts")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, named(&list.Items[i], list.Items[i].Name)...)
	}
	return requests
}

// named returns requests for Rollouts in the namespace of an object.
func named(o client.Object, rollouts ...string) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range rollouts {
		if name != "" {
			key := types.NamespacedName{Namespace: o.GetNamespace(), Name: name}
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}
