// SPDX-License-Identifier: Apache-2.0

// Command controller runs the Rollout controller: it promotes releases that
// Flux's image policies name into the Flux objects that deploy them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"
	_ "time/tzdata" // the image has no zones of its own

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	runtimecontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/controller"
	"github.com/fluxrollouts/rollout-controller/internal/metadata"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/release"
)

// After a read or a write that failed, a Rollout is tried again after these
// pauses; the longest is short enough for a deadline not to be missed by much.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// version is set when the controller is built.
var version = "dev"

func main() {
	var o options
	o.bind(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&o.log)))
	if err := run(ctrl.SetupSignalHandler(), &o); err != nil {
		ctrl.Log.Error(err, "the controller stopped")
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	config.QPS = -1 // the API server's priority and fairness is the limiter
	config.UserAgent = promotion.SystemName + "/" + version
	scheme, err := newScheme(config)
	if err != nil {
		return err
	}
	managerOptions := o.manager()
	managerOptions.Scheme = scheme
	mgr, err := ctrl.NewManager(config, managerOptions)
	if err != nil {
		return fmt.Errorf("prepare the manager: %w", err)
	}
	if err := register(ctx, mgr, o); err != nil {
		return err
	}
	ctrl.Log.Info("starting", "version", version)
	return mgr.Start(ctx)
}

// newScheme knows the kinds that the controller reads and writes, those of the
// image API in the version that the API server serves.
func newScheme(config *rest.Config) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(
		clientgoscheme.AddToScheme, v1alpha1.AddToScheme, sourcev1.AddToScheme, kustomizev1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare discovery: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("prepare discovery: %w", err)
	}
	served, err := release.AddImageTypes(scheme, mapper)
	if err != nil {
		return nil, err
	}
	ctrl.Log.Info("reading image policies", "apiVersion", served.String())
	return scheme, nil
}

// register adds the reconcilers and the probes to the manager.
func register(ctx context.Context, mgr ctrl.Manager, o *options) error {
	registries, err := registry.NewReader(mgr.GetClient(), mgr.GetAPIReader())
	if err != nil {
		return err
	}
	counted, timed, err := ownMetrics(mgr.GetCache())
	if err != nil {
		return err
	}
	rollouts := &controller.RolloutReconciler{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Events:    mgr.GetEventRecorderFor(promotion.SystemName), //nolint:staticcheck // clients of this API read core/v1 events by component
		Now:       time.Now,
		Metadata:  metadata.New(registries.Read, mgr.GetLogger().WithName("metadata")),
		Metrics:   counted,
		Durations: timed,
	}
	if err := addNotifications(mgr, o.eventsAddr, rollouts); err != nil {
		return err
	}
	if err := rollouts.SetupWithManager(ctx, mgr, runtimecontroller.Options{
		MaxConcurrentReconciles: o.concurrent,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}); err != nil {
		return fmt.Errorf("set up the rollout controller: %w", err)
	}
	for _, cluster := range []bool{false, true} {
		schedules := &controller.ScheduleReconciler{Client: rollouts.Client, Events: rollouts.Events, Now: time.Now, Cluster: cluster, Durations: timed}
		if err := schedules.SetupWithManager(mgr, runtimecontroller.Options{
			MaxConcurrentReconciles: o.concurrent,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}); err != nil {
			return fmt.Errorf("set up the controllers of schedules: %w", err)
		}
	}
	checks := &controller.HealthCheckReconciler{
		Client:               mgr.GetClient(),
		APIReader:            mgr.GetAPIReader(),
		Now:                  time.Now,
		NoCrossNamespaceRefs: o.noCrossRefs,
		Durations:            timed,
	}
	if err := checks.SetupWithManager(ctx, mgr, controller.HealthCheckReconcilerOptions{MaxConcurrentReconciles: o.concurrent}); err != nil {
		return fmt.Errorf("set up the healthcheck controller: %w", err)
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return fmt.Errorf("add the health probe: %w", err)
	}
	if err := mgr.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		return fmt.Errorf("add the readiness probe: %w", err)
	}
	return nil
}
