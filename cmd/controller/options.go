// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"strings"
	"time"

	fluxacl "github.com/fluxcd/pkg/runtime/acl"
	fluxfeatures "github.com/fluxcd/pkg/runtime/features"
	"github.com/fluxcd/pkg/runtime/leaderelection"
	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/fluxcd/pkg/runtime/pprof"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fluxrollouts/rollout-controller/internal/cache"
	"github.com/fluxrollouts/rollout-controller/internal/controller/deploymentcoordination"
	"github.com/fluxrollouts/rollout-controller/internal/controller/statefulsetrollout"
	"github.com/fluxrollouts/rollout-controller/internal/features"
)

// leaseName is the Lease that the controller's replicas contend for. It is the
// one that other controllers of this API use, so that two of them never run at
// the same time. Replicas that share a label selector add its hash.
const leaseName = "8108ddc4.kuberik.com"

// Environment variables: the controller's own namespace, as in Flux; the name of
// its own Deployment; and whether there may be a webhook, which only false denies.
const (
	runtimeNamespace = "RUNTIME_NAMESPACE"
	runtimeName      = "RUNTIME_NAME"
	enableWebhooks   = "ENABLE_WEBHOOKS"
)

// After a read or a write that failed, an object is tried again after these
// pauses; the longest is short enough for a deadline not to be missed by much.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// options are the command-line flags. Their names are part of the contract
// with existing installations: those that the first controllers of this API
// had, and beside them Flux's.
type options struct {
	metricsAddr     string
	metricsSecure   bool
	metricsCertPath string
	metricsCertName string
	metricsCertKey  string
	metricsSecret   string
	webhookCertPath string
	webhookCertName string
	webhookCertKey  string
	probeAddr       string
	leaseNamespace  string
	enableHTTP2     bool
	concurrent      int
	apiQPS          float64
	apiBurst        int
	minRetryDelay   time.Duration
	maxRetryDelay   time.Duration
	allNamespaces   bool
	noOwnLogin      bool
	labelSelector   string
	eventsAddr      string
	controllers     controllerList
	leaseID         string
	onlyNamespace   string
	serverPort      int
	useEviction     bool
	releaseHeld     bool
	zap             zap.Options

	log      logger.Options
	election leaderelection.Options
	refs     fluxacl.Options
	gates    fluxfeatures.FeatureGates

	// What follows from the flags and the environment.
	chosen      choice
	selector    labels.Selector // nil selects all
	namespace   string          // the controller's own; empty if it is not known
	name        string          // that of the controller's own Deployment; empty if it is not known
	webhooks    bool            // whether there may be any
	servesReady bool            // whether /ready is served beside the metrics

	metricsCertificate *metricsCertificate // nil if none is kept in a Secret
}

func (o *options) bind(flags *flag.FlagSet) {
	o.bindOwn(flags)
	o.bindFlux(flags)
	o.bindWorkloads(flags)
	o.zap.Development = true
	o.zap.BindFlags(flags)
}

func (o *options) bindOwn(flags *flag.FlagSet) {
	flags.StringVar(&o.metricsAddr, "metrics-bind-address", "0", "The address that metrics are served at; 0 serves none.")
	flags.BoolVar(&o.metricsSecure, "metrics-secure", true, "Serve metrics over HTTPS, to those who may read them.")
	flags.StringVar(&o.metricsCertPath, "metrics-cert-path", "", "The directory of the metrics server's certificate; one is made if empty.")
	flags.StringVar(&o.metricsCertName, "metrics-cert-name", "tls.crt", "The file name of the metrics server's certificate.")
	flags.StringVar(&o.metricsCertKey, "metrics-cert-key", "tls.key", "The file name of the metrics server's key.")
	flags.StringVar(&o.metricsSecret, "metrics-cert-secret", "", "The Secret in the controller's own namespace in which the metrics server's certificate is kept and renewed, and from which others read whom to trust. It has to exist.")
	flags.StringVar(&o.webhookCertPath, "webhook-cert-path", "", "The directory of the certificate of the webhook that holds Deployments; one is made and renewed if empty.")
	flags.StringVar(&o.webhookCertName, "webhook-cert-name", "tls.crt", "The file name of the webhook's certificate.")
	flags.StringVar(&o.webhookCertKey, "webhook-cert-key", "tls.key", "The file name of the webhook's key.")
	flags.StringVar(&o.probeAddr, "health-probe-bind-address", ":8081", "The address that /healthz and /readyz are served at; 0 serves none.")
	flags.Bool("leader-elect", false, "Let one of several replicas act at a time.")
	flags.StringVar(&o.leaseNamespace, "leader-election-namespace", "", "The namespace of the Lease; the controller's own if empty.")
	flags.BoolVar(&o.enableHTTP2, "enable-http2", false, "Serve metrics over HTTP/2 as well.")
	flags.Var(&o.controllers, "controllers", "The controllers to run, with commas between; -name leaves one out, * stands for all that are on by default: "+
		strings.Join(controllers(), ", ")+".")
	flags.StringVar(&o.eventsAddr, "events-addr", "", "The address of Flux's notification-controller, such as http://notification-controller.flux-system.svc.cluster.local./; empty sends no Flux events.")
}

// complete works out what follows from the flags that were given, and from the
// environment. Its errors are for whoever wrote them.
func (o *options) complete(flags *flag.FlagSet) error {
	o.namespace, o.name = os.Getenv(runtimeNamespace), os.Getenv(runtimeName)
	o.webhooks = os.Getenv(enableWebhooks) != "false"
	for _, step := range []func(*flag.FlagSet) error{
		o.completeNamespace, o.completeServer, o.completeMetrics, o.completeSelection, o.completeControllers,
	} {
		if err := step(flags); err != nil {
			return err
		}
	}
	return nil
}

// completeMetrics finds out which certificate metrics are served under. One that
// somebody provides as files comes first.
func (o *options) completeMetrics(*flag.FlagSet) error {
	if o.metricsSecret == "" || o.metricsCertPath != "" || !o.metricsSecure || o.metricsAddr == "0" {
		return nil
	}
	if o.namespace == "" {
		return fmt.Errorf("--metrics-cert-secret needs the environment variable %s, which says in which namespace it is", runtimeNamespace)
	}
	o.metricsCertificate = newMetricsCertificate(types.NamespacedName{Namespace: o.namespace, Name: o.metricsSecret})
	return nil
}

// completeSelection reads what says which objects to act for, and how.
func (o *options) completeSelection(*flag.FlagSet) error {
	if err := o.gates.SupportedFeatures(features.Defaults()); err != nil {
		return fmt.Errorf("--feature-gates: %w", err)
	}
	if o.labelSelector != "" {
		var err error
		if o.selector, err = labels.Parse(o.labelSelector); err != nil {
			return fmt.Errorf("--watch-label-selector: %w", err)
		}
	}
	if !o.allNamespaces && o.namespace == "" {
		return fmt.Errorf("--watch-all-namespaces=false needs the environment variable %s, "+
			"which says the only namespace that is watched", runtimeNamespace)
	}
	return nil
}

// completeControllers reads which controllers are wanted. Schedules of the
// cluster are left to an instance that sees all namespaces, which Rollouts obey
// all the same. Those who order what happens inside of a release are left to one
// that acts whatever the labels.
func (o *options) completeControllers(*flag.FlagSet) error {
	var err error
	if o.chosen, err = parseControllers(o.controllers.String()); err != nil {
		return fmt.Errorf("--controllers: %w", err)
	}
	if _, byName := o.chosen.wants(clusterScheduleController); byName && !o.allNamespaces {
		return fmt.Errorf("--controllers: %s needs --watch-all-namespaces", clusterScheduleController)
	}
	if !o.allNamespaces {
		o.chosen.leave(clusterScheduleController)
	}
	if o.selector != nil {
		o.chosen.leave(coordinators...)
	}
	return nil
}

// namespaces are those that are watched; none means all.
func (o *options) namespaces() map[string]ctrlcache.Config {
	switch {
	case o.allNamespaces:
		return nil
	case o.onlyNamespace != "":
		return map[string]ctrlcache.Config{o.onlyNamespace: {}}
	}
	return map[string]ctrlcache.Config{o.namespace: {}}
}

func (o *options) manager(starts map[string]bool) ctrl.Options {
	return ctrl.Options{
		Cache:                         o.caches(starts),
		Metrics:                       o.metrics(),
		HealthProbeBindAddress:        o.probeAddr,
		LeaderElection:                o.election.Enable,
		LeaderElectionID:              o.lease(),
		LeaderElectionNamespace:       o.electionNamespace(),
		LeaderElectionReleaseOnCancel: o.election.ReleaseOnCancel, // main exits as soon as the manager has stopped
		LeaseDuration:                 &o.election.LeaseDuration,
		RenewDeadline:                 &o.election.RenewDeadline,
		RetryPeriod:                   &o.election.RetryPeriod,
		GracefulShutdownTimeout:       ptr.To(workersGrace),
	}
}

// caches hold only what the controllers that start read.
func (o *options) caches(starts map[string]bool) ctrlcache.Options {
	caches := ctrlcache.Options{DefaultTransform: ctrlcache.TransformStripManagedFields()}
	if promotes(starts) {
		caches = cache.Options(o.selector)
	}
	if caches.ByObject == nil {
		caches.ByObject = map[client.Object]ctrlcache.ByObject{}
	}
	if starts[coordinationController] {
		maps.Copy(caches.ByObject, deploymentcoordination.CacheByObject())
	}
	if starts[statefulSetController] {
		maps.Copy(caches.ByObject, statefulsetrollout.CacheByObject())
	}
	caches.DefaultNamespaces = o.namespaces()
	for only := range caches.DefaultNamespaces { // of others nothing is read for which their labels matter
		caches.ByObject[&corev1.Namespace{}] = ctrlcache.ByObject{Field: fields.OneTermEqualSelector(metav1.ObjectNameField, only)}
	}
	return caches
}

// lease names the Lease. Instances with different selectors do different work,
// and must not wait for each other.
func (o *options) lease() string {
	if o.selector == nil {
		return o.leaseID
	}
	return leaderelection.GenerateID(o.leaseID, o.selector.String())
}

// electionNamespace is where the Lease is. Empty is the namespace of the pod,
// which outside of one is an error.
func (o *options) electionNamespace() string {
	if o.leaseNamespace != "" {
		return o.leaseNamespace
	}
	return o.namespace
}

// isLoopback reports whether only this machine reaches an address.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && net.ParseIP(host).IsLoopback()
}

// metrics are served with profiles beside them, as by every controller of Flux, but
// only where it is asked who reads them, or where nobody else on the network can: a
// profile takes time and memory of the process.
func (o *options) metrics() metricsserver.Options {
	metrics := metricsserver.Options{
		BindAddress:   o.metricsAddr,
		SecureServing: o.metricsSecure,
		CertDir:       o.metricsCertPath,
		CertName:      o.metricsCertName,
		KeyName:       o.metricsCertKey,
	}
	if o.metricsSecure || isLoopback(o.metricsAddr) {
		metrics.ExtraHandlers = maps.Clone(pprof.GetHandlers())
	}
	if o.metricsSecure {
		metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	if o.metricsCertificate != nil {
		metrics.TLSOpts = append(metrics.TLSOpts, func(c *tls.Config) { c.GetCertificate = o.metricsCertificate.get })
	}
	if !o.enableHTTP2 {
		metrics.TLSOpts = append(metrics.TLSOpts, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })
	}
	return metrics
}
