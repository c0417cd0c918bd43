// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"fmt"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
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
	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
	"github.com/fluxrollouts/rollout-controller/internal/fair"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// indexSubject finds HealthChecks by what they are about.
const indexSubject = fieldindex.Everywhere + ".metadata.healthCheckSubject"

// Options contains options for the Reconciler.
type Options struct {
	// RateLimiter paces the retries of evaluations whose write has failed.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
	// MaxRetryDelay is the longest delay before an evaluation with a failed read is
	// repeated.
	MaxRetryDelay time.Duration
	// MaxConcurrentReconciles is how many checks are evaluated at a time.
	MaxConcurrentReconciles int
}

// SetupWithManager sets up the controller with the Manager. It indexes the HealthChecks
// by what they are about. It sets up watches for HealthChecks, for Kustomizations and for
// the kinds in inventories.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, opts Options) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.HealthCheck{}, indexSubject, indexBySubject); err != nil {
		return fmt.Errorf("index HealthChecks by subject: %w", err)
	}
	objects, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("create a client for metadata: %w", err)
	}
	inventories := &inventorySource{reconciler: r}
	watches := &kindWatches{client: objects, changed: inventories.changed, lost: inventories.lost, now: r.Now}
	inventories.watches = watches
	r.checker = &kustomization.Checker{
		Objects: r.Objects, Mapper: mgr.GetRESTMapper(), Now: r.Now, NoCrossNamespaceRefs: r.NoCrossNamespaceRefs,
	}
	r.watches, r.wake = watches, inventories.wake
	r.retries = newRetries(opts.MaxRetryDelay)
	built, err := ctrl.NewControllerManagedBy(mgr).
		Named("healthcheck").
		For(&v1alpha1.HealthCheck{}, builder.WithPredicates(r.Shard.Predicate(), r.checkPredicate())).
		Watches(&kustomizev1.Kustomization{}, r.sourceHandler(kustomizev1.KustomizationKind)).
		WatchesRawSource(inventories).
		WithOptions(controller.Options{
			RateLimiter: opts.RateLimiter, MaxConcurrentReconciles: opts.MaxConcurrentReconciles,
			NewQueue: fair.NewQueue(opts.MaxConcurrentReconciles),
		}).
		Build(r.Durations.Of("HealthCheck", r, r.Shard.Handles, func() client.Object { return &v1alpha1.HealthCheck{} }))
	if err != nil {
		return err
	}
	r.cache, r.watch = mgr.GetCache(), built.Watch
	return nil
}

// WatchHelmReleases makes the reconciler watch HelmReleases too. The API server must serve
// them. It may be called once, after SetupWithManager, also while the manager runs. Until
// then, checks of HelmReleases are evaluated in intervals.
func (r *Reconciler) WatchHelmReleases(context.Context) error {
	helm := source.Kind[client.Object](r.cache, &helmv2.HelmRelease{}, r.sourceHandler(helmv2.HelmReleaseKind))
	if err := r.watch(helm); err != nil {
		return fmt.Errorf("watch HelmReleases: %w", err)
	}
	r.helmWatched.Store(true)
	return nil
}

// newRetries returns the rate limiter for evaluations in which a read has failed.
func newRetries(longest time.Duration) workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, longest)
}

func indexBySubject(object client.Object) []string {
	check, ok := object.(*v1alpha1.HealthCheck)
	if !ok || !isEvaluated(check) {
		return nil
	}
	subject, err := kustomization.Reference(check)
	if err != nil {
		return nil
	}
	return []string{subject.String()}
}

// queue is the queue that the events of other objects are put into.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// checkPredicate admits the events of a HealthCheck that may lead to another verdict,
// above all a reset. It does not admit own writes. It records each version: a look that
// begins afterwards may be evidence for it.
func (r *Reconciler) checkPredicate() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			check, ok := e.Object.(*v1alpha1.HealthCheck)
			return ok && r.notes(check)
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1alpha1.HealthCheck)
			after, okAfter := e.ObjectNew.(*v1alpha1.HealthCheck)
			if !ok || !okAfter {
				return false
			}
			is, was := r.notes(after), r.evaluates(before)
			if r.evaluations.isOwn(client.ObjectKeyFromObject(after), after.ResourceVersion) {
				return false
			}
			if !was || !is {
				return was != is // others evaluate the check, before and after
			}
			return !equality.Semantic.DeepEqual(before.Status, after.Status) || annotationsDiffer(before, after)
		},
	}
}

// notes reports whether the check is evaluated here. If so, it records its version.
func (r *Reconciler) notes(check *v1alpha1.HealthCheck) bool {
	if !r.evaluates(check) {
		return false
	}
	r.sharing.saw(client.ObjectKeyFromObject(check), check.ResourceVersion)
	return true
}

func annotationsDiffer(before, after *v1alpha1.HealthCheck) bool {
	for _, name := range []string{
		v1alpha1.KustomizationAnnotation,
		v1alpha1.HelmReleaseAnnotation,
		v1alpha1.RequeueIntervalAnnotation,
		v1alpha1.ReconcileRequestAnnotation,
	} {
		if before.GetAnnotations()[name] != after.GetAnnotations()[name] {
			return true
		}
	}
	return false
}

// sourceHandler evaluates the checks of a Kustomization or a HelmRelease when their verdict
// may change. Flux writes its status several times in each pass, mostly to report progress.
// A pass that changes nothing causes no evaluation.
func (r *Reconciler) sourceHandler(kind string) handler.EventHandler {
	enqueue := func(ctx context.Context, object client.Object, gone bool, queue queue) {
		subject := kustomization.Subject{Kind: kind, NamespacedName: client.ObjectKeyFromObject(object)}
		r.enqueue(ctx, subject, queue, func(check types.NamespacedName) bool {
			return gone || !r.evaluations.restsOn(check, object)
		})
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue queue) {
			enqueue(ctx, e.Object, false, queue)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue queue) {
			enqueue(ctx, e.ObjectNew, false, queue)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue queue) {
			enqueue(ctx, e.Object, true, queue)
		},
	}
}

// enqueue puts the checks of a subject into the queue, all at its pace: events that
// come before the next look count as one.
func (r *Reconciler) enqueue(ctx context.Context, subject kustomization.Subject, queue queue,
	concerned func(check types.NamespacedName) bool,
) {
	r.sharing.changed(subject)
	checks := &v1alpha1.HealthCheckList{}
	if err := r.Client.List(ctx, checks, client.MatchingFields{indexSubject: subject.String()},
		client.UnsafeDisableDeepCopy, unreadable.Left{}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "failed to list the HealthChecks of what has changed", "changed", subject.String())
		return
	}
	for i := range checks.Items {
		key := client.ObjectKeyFromObject(&checks.Items[i])
		if r.evaluates(&checks.Items[i]) && concerned(key) {
			queue.AddAfter(ctrl.Request{NamespacedName: key}, r.sharing.untilNext(subject, r.Now()))
		}
	}
}

// inventorySource puts checks into the queue when objects of their inventories change.
type inventorySource struct {
	reconciler *Reconciler
	watches    *kindWatches
	queue      queue
}

// Start stores the queue and starts the watches. The controller calls it before its
// workers start.
func (s *inventorySource) Start(ctx context.Context, queue queue) error {
	s.queue = queue
	s.watches.start(ctx)
	return nil
}

func (s *inventorySource) changed(ctx context.Context, subject kustomization.Subject) {
	s.reconciler.enqueue(ctx, subject, s.queue, func(types.NamespacedName) bool { return true })
}

// lost re-evaluates the checks, which then look in intervals.
func (s *inventorySource) lost(checks []types.NamespacedName) {
	for _, key := range checks {
		s.wake(key)
	}
}

// wake puts a check into the queue.
func (s *inventorySource) wake(check types.NamespacedName) {
	s.queue.Add(ctrl.Request{NamespacedName: check})
}
