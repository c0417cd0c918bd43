// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"fmt"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
	"github.com/fluxrollouts/rollout-controller/internal/fair"
	"github.com/fluxrollouts/rollout-controller/internal/health/changes"
	"github.com/fluxrollouts/rollout-controller/internal/health/kustomization"
)

// indexKustomization finds HealthChecks by the Kustomization that they are about, as
// namespace/name.
const indexKustomization = fieldindex.Everywhere + ".metadata.healthCheckKustomization"

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
// by their Kustomization. It sets up watches for HealthChecks, for Kustomizations and for
// the kinds in their inventories.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, opts Options) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.HealthCheck{}, indexKustomization,
		indexByKustomization); err != nil {
		return fmt.Errorf("failed creating index %s: %w", indexKustomization, err)
	}
	objects, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("failed creating a client for metadata: %w", err)
	}
	live, err := kustomization.NewLive(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("failed creating a client for inventories: %w", err)
	}
	inventories := &inventorySource{reconciler: r}
	watches := &changes.Watches{Client: objects, Changed: inventories.changed, Lost: inventories.lost, Now: r.Now}
	inventories.watches = watches
	r.checker = &kustomization.Checker{
		Objects: live, Mapper: mgr.GetRESTMapper(), Now: r.Now, NoCrossNamespaceRefs: r.NoCrossNamespaceRefs,
	}
	r.watches, r.wake = watches, inventories.wake
	r.retries = newRetries(opts.MaxRetryDelay)
	return ctrl.NewControllerManagedBy(mgr).
		Named("healthcheck").
		For(&v1alpha1.HealthCheck{}, builder.WithPredicates(r.Shard.Predicate(), r.checkPredicate())).
		Watches(&kustomizev1.Kustomization{}, r.kustomizationHandler()).
		WatchesRawSource(inventories).
		WithOptions(controller.Options{
			RateLimiter: opts.RateLimiter, MaxConcurrentReconciles: opts.MaxConcurrentReconciles, NewQueue: fair.NewQueue,
		}).
		Complete(r.Durations.Of("HealthCheck", r, r.Shard.Handles, func() client.Object { return &v1alpha1.HealthCheck{} }))
}

// newRetries returns the rate limiter for evaluations in which a read has failed.
func newRetries(longest time.Duration) workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, longest)
}

func indexByKustomization(object client.Object) []string {
	check, ok := object.(*v1alpha1.HealthCheck)
	if !ok || !isEvaluated(check) {
		return nil
	}
	ref, err := kustomization.Reference(check)
	if err != nil {
		return nil
	}
	return []string{ref.String()}
}
