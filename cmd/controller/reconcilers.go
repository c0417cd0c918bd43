// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	fluxfeatures "github.com/fluxcd/pkg/runtime/features"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	runtimecontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/controller/healthcheck"
	"github.com/fluxrollouts/rollout-controller/internal/controller/rollout"
	"github.com/fluxrollouts/rollout-controller/internal/controller/schedule"
	"github.com/fluxrollouts/rollout-controller/internal/controller/statefulsetrollout"
	"github.com/fluxrollouts/rollout-controller/internal/fair"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
	"github.com/fluxrollouts/rollout-controller/internal/live"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/registry/imageinfo"
	"github.com/fluxrollouts/rollout-controller/internal/shard"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// wiring contains what the reconcilers share.
type wiring struct {
	ctrl.Manager
	*options
	cluster      cluster
	starts       map[string]bool
	broadcasters *broadcasters
	shard        shard.Shard
	timed        *metrics.Durations
	unread       *unreadable.Objects
	guard        destination.Guard
	reports      reports
	live         *live.Reader // past the caches: nothing else reads there what tenants write
}

// register adds the reconcilers that start, and the probes, to the manager.
func register(ctx context.Context, w wiring) error {
	var err error
	if w.timed, err = ownMetrics(w.GetCache()); err != nil {
		return err
	}
	if err := w.registerUnread(); err != nil {
		return err
	}
	if err := w.registerMetricsCertificate(); err != nil {
		return fmt.Errorf("set up the certificate of the metrics: %w", err)
	}
	if err := w.registerReleases(ctx); err != nil {
		return err
	}
	if err := w.registerCoordinators(ctx); err != nil {
		return err
	}
	if err := w.registerCleanup(ctx); err != nil {
		return fmt.Errorf("set up the cleanup after the coordinator: %w", err)
	}
	if err := w.registerAbandoned(ctx); err != nil {
		return fmt.Errorf("set up what unpauses Deployments without a coordination: %w", err)
	}
	return w.registerProbes()
}

// registerUnread adds the reports about objects that cannot be read.
func (w wiring) registerUnread() error {
	w.unread.Report = announce.Unreadable(w.GetLogger(), w.events())
	if err := runtimemetrics.Registry.Register(metrics.Unreadable(w.unread.Count)); err != nil {
		return fmt.Errorf("count objects that cannot be read: %w", err)
	}
	return w.Add(w.unread)
}

// registerReleases adds the controllers that promote releases.
func (w wiring) registerReleases(ctx context.Context) error {
	if !promotes(w.starts) {
		return nil
	}
	var err error
	if w.shard, err = shard.New(w, w.unread.NewCache, w.selector, w.namespaces()); err != nil {
		return err
	}
	if w.reports, err = w.newReports(); err != nil {
		return fmt.Errorf("set up the reports of environments: %w", err)
	}
	if w.starts[rolloutController] {
		if err := w.registerRollouts(ctx); err != nil {
			return fmt.Errorf("set up the rollout controller: %w", err)
		}
	}
	if err := w.registerSchedules(ctx); err != nil {
		return fmt.Errorf("set up the controllers of schedules: %w", err)
	}
	if err := w.registerNewer(ctx); err != nil {
		return err
	}
	if w.starts[healthCheckController] {
		if err := w.registerHealthChecks(ctx); err != nil {
			return fmt.Errorf("set up the healthcheck controller: %w", err)
		}
	}
	return nil
}

// registerNewer adds those of newerControllers that start.
func (w wiring) registerNewer(ctx context.Context) error {
	if w.starts[environmentController] {
		if err := w.registerEnvironments(ctx); err != nil {
			return fmt.Errorf("set up the environment controller: %w", err)
		}
	}
	if w.starts[quarantineController] {
		if err := w.registerQuarantines(); err != nil {
			return fmt.Errorf("set up the quarantine controller: %w", err)
		}
	}
	if w.starts[clusterGateController] {
		if err := w.registerClusterGates(); err != nil {
			return fmt.Errorf("set up the controller of ClusterRolloutGates: %w", err)
		}
	}
	return nil
}

// registerProbes adds /healthz and /readyz, and also /ready for clients that use that
// name. It does not depend on which replica leads.
func (w wiring) registerProbes() error {
	err := errors.Join(w.AddHealthzCheck("healthz", healthz.Ping), w.AddReadyzCheck("readyz", healthz.Ping))
	if err == nil && w.servesReady {
		err = w.AddMetricsServerExtraHandler("/ready", statefulsetrollout.Ready(w.GetCache()))
	}
	if err != nil {
		return fmt.Errorf("add the probes: %w", err)
	}
	return nil
}

func (w wiring) registerRollouts(ctx context.Context) error {
	store, err := w.metadata()
	if err != nil {
		return err
	}
	counted, err := rolloutMetrics()
	if err != nil {
		return err
	}
	rollouts := &rollout.Reconciler{
		Client:                w.GetClient(),
		APIReader:             w.live.Keeping(rollout.Kept()),
		Objects:               w.live.Objects,
		Events:                w.events(),
		Now:                   time.Now,
		Metadata:              store,
		Reports:               w.reports.store,
		NoCrossNamespaceRefs:  w.refs.NoCrossNamespaceRefs,
		QuarantinesEverywhere: w.quarantineScope == quarantine.ScopeCluster,
		ApprovalRetention:     w.approvalRetention,
		Shard:                 w.shard,
		Metrics:               counted,
		Durations:             w.timed,
	}
	if err := addNotifications(w, w.eventsAddr, rollouts); err != nil {
		return err
	}
	if err := rollouts.SetupWithManager(ctx, w, w.controller()); err != nil {
		return err
	}
	if err := w.watchEnvironments(ctx, rollouts); err != nil {
		return err
	}
	if err := w.watchQuarantines(ctx, rollouts); err != nil {
		return err
	}
	if err := w.watchLate(ctx, gitRepositories, rollouts.WatchGitRepositories); err != nil {
		return err
	}
	if err := w.watchArtifacts(ctx, rollouts.WatchArtifacts); err != nil {
		return err
	}
	if err := w.watchApprovals(ctx, rollouts); err != nil {
		return err
	}
	if err := w.watchIdentity(ctx, rollouts); err != nil {
		return err
	}
	return w.watchLate(ctx, helmReleases, rollouts.WatchHelmReleases)
}

func (w wiring) registerSchedules(ctx context.Context) error {
	if !w.starts[scheduleController] && !w.starts[clusterScheduleController] {
		return nil
	}
	if err := schedule.IndexGatesByOwner(ctx, w.GetFieldIndexer()); err != nil {
		return err
	}
	for _, name := range []string{scheduleController, clusterScheduleController} {
		if !w.starts[name] {
			continue
		}
		schedules := &schedule.Reconciler{
			Client: w.GetClient(), Events: w.events(), Now: time.Now, Cluster: name == clusterScheduleController,
			Shard: w.shard, Durations: w.timed,
		}
		if err := schedules.SetupWithManager(w, w.controller()); err != nil {
			return err
		}
	}
	return nil
}

func (w wiring) registerHealthChecks(ctx context.Context) error {
	checks := &healthcheck.Reconciler{
		Client:               w.GetClient(),
		Objects:              w.live.Objects,
		Now:                  time.Now,
		NoCrossNamespaceRefs: w.refs.NoCrossNamespaceRefs,
		Shard:                w.shard,
		Durations:            w.timed,
	}
	if err := checks.SetupWithManager(ctx, w, healthcheck.Options{
		MaxConcurrentReconciles: w.concurrent, RateLimiter: w.rateLimiter(), MaxRetryDelay: w.maxRetryDelay,
	}); err != nil {
		return err
	}
	if err := w.watchLate(ctx, helmReleases, checks.WatchHelmReleases); err != nil {
		return err
	}
	return w.registerMeasurements(ctx)
}

// metadata returns the store that queries registries. It is nil if the feature is
// disabled.
func (w wiring) metadata() (*imageinfo.Store, error) {
	enabled, err := fluxfeatures.Enabled(releaseMetadata)
	if err != nil || !enabled {
		return nil, err
	}
	registries, err := w.registryReader()
	if err != nil {
		return nil, err
	}
	return imageinfo.New(registries.Read, registries.List, w.GetLogger().WithName("metadata")), nil
}

func (w wiring) registryReader() (*registry.Reader, error) {
	registries, err := registry.NewReader(w.GetClient(), w.live, w.guard)
	if err != nil {
		return nil, err
	}
	registries.NoOwnCredentials = w.noOwnLogin
	return registries, nil
}

func (w wiring) events() record.EventRecorder { return w.eventsBy(promotion.SystemName) }

// controller returns the options that the controllers have in common.
func (w wiring) controller() runtimecontroller.Options {
	return runtimecontroller.Options{
		MaxConcurrentReconciles: w.concurrent,
		RateLimiter:             w.rateLimiter(),
		NewQueue:                fair.NewQueue(w.concurrent),
	}
}

func (o *options) rateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](o.minRetryDelay, o.maxRetryDelay)
}
