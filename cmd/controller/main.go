// SPDX-License-Identifier: Apache-2.0

// Command controller runs the Rollout Controller. It promotes releases that Flux's image
// policies select into the Flux objects that deploy them, and orders the steps within one
// release.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"
	_ "time/tzdata" // the image contains no time zones

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/runtime/logger"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cache"
	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
	"github.com/fluxrollouts/rollout-controller/internal/flux/imagepolicy"
	"github.com/fluxrollouts/rollout-controller/internal/live"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// version is set when the controller is built.
var version = "dev"

func main() {
	var o options
	o.bind(flag.CommandLine)
	flag.Parse()
	errs := mergeFlags(flag.CommandLine)
	log, err := o.logger(flag.CommandLine)
	logger.SetLogger(withLateValues(log))
	if err := errors.Join(errs, err, o.complete(flag.CommandLine)); err != nil {
		ctrl.Log.Error(err, "the flags cannot be used")
		os.Exit(2)
	}
	if err := run(ctrl.SetupSignalHandler(), &o); err != nil {
		ctrl.Log.Error(err, "the controller stopped")
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) error {
	config, err := o.restConfig()
	if err != nil {
		return err
	}
	if o.unpauseAndStop {
		return o.release(ctx, config)
	}
	on, err := connect(config)
	if err != nil {
		return err
	}
	starts, waiting, err := o.preflight(ctx, on)
	if err != nil {
		return o.unpauseWithout(ctx, config, on, err)
	}
	scheme, err := newScheme(on.mapper, starts)
	if err != nil {
		return err
	}
	managerOptions := o.manager(starts)
	managerOptions.Scheme = scheme
	managerOptions.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return on.mapper, nil }
	unread := &unreadable.Objects{}
	managerOptions.NewCache, managerOptions.NewClient = fieldindex.NewCache(unread.NewCache), unreadable.NewClient
	mgr, err := ctrl.NewManager(config, managerOptions)
	if err != nil {
		return fmt.Errorf("prepare the manager: %w", err)
	}
	objects, err := live.NewObjects(config, mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	past := live.NewReader(objects, scheme, on.mapper, ctrlcache.Options{
		DefaultTransform: cache.Options(cache.Setting{}).DefaultTransform, ByObject: managerOptions.Cache.ByObject, // what is read once counts for no namespace
	})
	broadcasters, err := startEvents(mgr)
	if err != nil {
		return err
	}
	defer broadcasters.Shutdown() // sends the remaining events
	wired := wiring{
		Manager: mgr, options: o, cluster: on, starts: starts, broadcasters: broadcasters, unread: unread,
		live: past, guard: newGuard(past),
	}
	if err := register(ctx, wired); err != nil {
		return err
	}
	if err := awaitKinds(ctx, mgr, on, waiting); err != nil {
		return err
	}
	ctrl.Log.Info("starting", "version", version, "controllers", slices.Sorted(maps.Keys(starts)), "lease", o.lease(),
		"watchLabelSelector", o.labelSelector, "watchAllNamespaces", o.allNamespaces)
	return runUntil(ctx, mgr)
}

// Time limits for the process after it was asked to end: the manifests give it ten
// seconds.
const (
	// workersGrace is the limit for passes that are under way.
	workersGrace = 7 * time.Second
	// grace is the total limit.
	grace = 8 * time.Second
)

// runUntil runs the manager until ctx ends. It returns even if the manager does not stop
// then: a manager whose caches were never filled, for example without the right to read a
// kind, waits for them for ever (controller-runtime v0.24, runnableGroup.Start).
func runUntil(ctx context.Context, mgr ctrl.Manager) error {
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(grace):
		return fmt.Errorf("the manager did not stop within %s", grace)
	}
}

// restConfig returns the configuration of the client. By default, the server's priority
// and fairness is the only limit.
func (o *options) restConfig() (*rest.Config, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	config.QPS = -1
	if o.apiQPS > 0 {
		config.QPS, config.Burst = float32(o.apiQPS), o.apiBurst
	}
	config.UserAgent = promotion.SystemName + "/" + version
	return config, nil
}

// connect prepares discovery and checks of rights.
func connect(config *rest.Config) (cluster, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return cluster{}, fmt.Errorf("prepare discovery: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return cluster{}, fmt.Errorf("prepare discovery: %w", err)
	}
	access, err := authorizationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return cluster{}, fmt.Errorf("prepare asking for rights: %w", err)
	}
	return cluster{mapper: &mappings{RESTMapper: mapper}, access: access.SelfSubjectAccessReviews()}, nil
}

// newScheme returns a scheme with the kinds that the controllers read and write. The
// kinds of the image API have the version that the API server serves.
func newScheme(mapper meta.RESTMapper, starts map[string]bool) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(
		clientgoscheme.AddToScheme, v1alpha1.AddToScheme, coordinationv1.AddToScheme,
		environmentsv1.AddToScheme, sourcev1.AddToScheme, generatorv1.AddToScheme, kustomizev1.AddToScheme, helmv2.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	if !starts[rolloutController] {
		return scheme, nil
	}
	served, err := imagepolicy.AddImageTypes(scheme, mapper)
	if err != nil {
		return nil, err
	}
	ctrl.Log.Info("reading image policies", "apiVersion", served.String())
	return scheme, nil
}
