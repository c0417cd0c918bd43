// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	runtimecontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxrollouts/rollout-controller/internal/controller"
	"github.com/fluxrollouts/rollout-controller/internal/features"
	"github.com/fluxrollouts/rollout-controller/internal/metadata"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
)

// wiring is what the reconcilers share.
type wiring struct {
	ctrl.Manager
	*options
	shard   controller.Shard
	counted *metrics.Rollouts
	timed   *metrics.Durations
}

// register adds the reconcilers and the probes to the manager.
func register(ctx context.Context, mgr ctrl.Manager, o *options) error {
	shard, err := controller.NewShard(mgr, o.selector, o.namespaces())
	if err != nil {
		return err
	}
	w := wiring{Manager: mgr, options: o, shard: shard}
	if w.counted, w.timed, err = ownMetrics(mgr.GetCache()); err != nil {
		return err
	}
	if err := w.registerRollouts(ctx); err != nil {
		return fmt.Errorf("set up the rollout controller: %w", err)
	}
	if err := w.registerSchedules(); err != nil {
		return fmt.Errorf("set up the controllers of schedules: %w", err)
	}
	if err := w.registerHealthChecks(ctx); err != nil {
		return fmt.Errorf("set up the healthcheck controller: %w", err)
	}
	if err := errors.Join(mgr.AddHealthzCheck("healthz", healthz.Ping), mgr.AddReadyzCheck("readyz", healthz.Ping)); err != nil {
		return fmt.Errorf("add the probes: %w", err)
	}
	return nil
}

func (w wiring) registerRollouts(ctx context.Context) error {
	store, err := w.metadata()
	if err != nil {
		return err
	}
	rollouts := &controller.RolloutReconciler{
		Client:               w.GetClient(),
		APIReader:            w.GetAPIReader(),
		Events:               w.events(),
		Now:                  time.Now,
		Metadata:             store,
		NoCrossNamespaceRefs: w.refs.NoCrossNamespaceRefs,
		Shard:                w.shard,
		Metrics:              w.counted,
		Durations:            w.timed,
	}
	if err := addNotifications(w, w.eventsAddr, rollouts); err != nil {
		return err
	}
	return rollouts.SetupWithManager(ctx, w, w.controller())
}

// registerSchedules leaves the schedules of the cluster to an instance that
// sees all namespaces. Rollouts obey them all the same.
func (w wiring) registerSchedules() error {
	kinds := []bool{false}
	if w.allNamespaces {
		kinds = append(kinds, true)
	}
	for _, cluster := range kinds {
		schedules := &controller.ScheduleReconciler{
			Client: w.GetClient(), Events: w.events(), Now: time.Now, Cluster: cluster, Shard: w.shard, Durations: w.timed,
		}
		if err := schedules.SetupWithManager(w, w.controller()); err != nil {
			return err
		}
	}
	return nil
}

func (w wiring) registerHealthChecks(ctx context.Context) error {
	checks := &controller.HealthCheckReconciler{
		Client:               w.GetClient(),
		APIReader:            w.GetAPIReader(),
		Now:                  time.Now,
		NoCrossNamespaceRefs: w.refs.NoCrossNamespaceRefs,
		Shard:                w.shard,
		Durations:            w.timed,
	}
	return checks.SetupWithManager(ctx, w, controller.HealthCheckReconcilerOptions{
		MaxConcurrentReconciles: w.concurrent, RateLimiter: w.rateLimiter(),
	})
}

// metadata asks registries, unless the feature is off; then it is nil.
func (w wiring) metadata() (*metadata.Store, error) {
	enabled, err := features.Enabled(features.ReleaseMetadata)
	if err != nil || !enabled {
		return nil, err
	}
	registries, err := registry.NewReader(w.GetClient(), w.GetAPIReader())
	if err != nil {
		return nil, err
	}
	return metadata.New(registries.Read, w.GetLogger().WithName("metadata")), nil
}

func (w wiring) events() record.EventRecorder {
	return w.GetEventRecorderFor(promotion.SystemName) //nolint:staticcheck // clients of this API read core/v1 events by component
}

// controller are the options that the controllers have in common.
func (w wiring) controller() runtimecontroller.Options {
	return runtimecontroller.Options{
		MaxConcurrentReconciles: w.concurrent,
		RateLimiter:             w.rateLimiter(),
	}
}

func (o *options) rateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](o.minRetryDelay, o.maxRetryDelay)
}
