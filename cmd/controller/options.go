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
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

// leaseName is the Lease that the controller's replicas compete for. Other controllers of
// this API use the same Lease, so two of them never run at the same time. Replicas that
// share a label selector add its hash.
const leaseName = "8108ddc4.kuberik.com"

// Environment variables: the controller's own namespace, as in Flux; the name of its own
// Deployment; and whether there may be a webhook, which only the value false disables.
const (
	runtimeNamespace = "RUNTIME_NAMESPACE"
	runtimeName      = "RUNTIME_NAME"
	enableWebhooks   = "ENABLE_WEBHOOKS"
)

// After a failed read or write, an object is tried again after these pauses. The longest
// is short, so a deadline is not missed by much.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// options are the command-line flags. Their names are part of the contract with existing
// installations: the flags of the first controllers of this API, and in addition those of
// Flux.
type options struct {
	metricsAddr     string
	metricsSecure   bool
	metricsCertPath string
	metricsCertName string
	metricsCertKey  string
	metricsSecret   string
	webhookPort     int
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
	namespaceMemory memory
	eventsAddr      string
	controllers     controllerList
	leaseID         string
	quarantineScope quarantine.Scope

	approvalIdentity  string
	approvalRetention time.Duration

	onlyNamespace  string
	serverPort     int
	useEviction    bool
	unpauseAndStop bool
	zap            zap.Options

	log      logger.Options
	election leaderelection.Options
	refs     fluxacl.Options
	gates    fluxfeatures.FeatureGates
	reports  reportOptions
	probes   probeOptions

	// Derived from the flags and the environment.
	chosen      choice
	selector    labels.Selector // nil selects all
	namespace   string          // the controller's own; empty if it is not known
	name        string          // of the controller's own Deployment; empty if it is not known
	webhooks    bool            // whether a webhook is allowed
	servesReady bool            // whether /ready is served next to the metrics

	metricsCertificate *metricsCertificate // nil if no Secret contains one
}

func (o *options) bind(flags *flag.FlagSet) {
	o.bindOwn(flags)
	o.bindFlux(flags)
	o.bindWorkloads(flags)
	o.bindQuarantines(flags)
	o.bindIdentity(flags)
	o.reports.bind(flags)
	o.probes.bind(flags)
	o.zap.Development = true
	o.zap.BindFlags(flags)
}

func (o *options) bindOwn(flags *flag.FlagSet) {
	flags.StringVar(&o.metricsAddr, "metrics-bind-address", "0", "The address of the metrics; 0 disables them. The shipped Deployment sets :8443.")
	flags.BoolVar(&o.metricsSecure, "metrics-secure", true, "Serve metrics over HTTPS, and only to clients that may read them; false: plain HTTP for everybody, as Flux's controllers have it.")
	flags.StringVar(&o.metricsCertPath, "metrics-cert-path", "", "The directory with the certificate of the metrics server; if empty, the controller creates one.")
	flags.StringVar(&o.metricsCertName, "metrics-cert-name", "tls.crt", "The file name of the metrics server's certificate.")
	flags.StringVar(&o.metricsCertKey, "metrics-cert-key", "tls.key", "The file name of the metrics server's key.")
	flags.StringVar(&o.metricsSecret, "metrics-cert-secret", "", "An existing Secret in the controller's own namespace in which the certificate of the metrics server is kept and renewed; if empty, there is a new one at each start. The shipped Deployment sets this flag.")
	flags.IntVar(&o.webhookPort, "webhook-port", 9443, "The port of the webhook that pauses Deployments; its Service must send to the same port.")
	flags.StringVar(&o.webhookCertPath, "webhook-cert-path", "", "The directory with the certificate of the webhook that pauses Deployments; if empty, the controller creates and renews one.")
	flags.StringVar(&o.webhookCertName, "webhook-cert-name", "tls.crt", "The file name of the webhook's certificate.")
	flags.StringVar(&o.webhookCertKey, "webhook-cert-key", "tls.key", "The file name of the webhook's key.")
	flags.StringVar(&o.probeAddr, "health-probe-bind-address", ":8081", "The address of /healthz and /readyz; 0 disables them.")
	flags.Bool("leader-elect", false, "Let only one replica act at a time. The shipped Deployment sets this flag.")
	flags.StringVar(&o.leaseNamespace, "leader-election-namespace", "", "The namespace of the Lease; if empty, that in RUNTIME_NAMESPACE, or else of the pod.")
	flags.BoolVar(&o.enableHTTP2, "enable-http2", false, "Serve metrics over HTTP/2 as well.")
	flags.Var(&o.controllers, "controllers", "The controllers to run, with commas between; -name leaves one out, * stands for all that are on by default: "+
		strings.Join(controllers(), ", ")+".")
	flags.Var(&o.namespaceMemory, namespaceMemory, "How much memory the objects of one namespace may take in the caches, such as 8Mi; 0 is no limit. What does not fit cannot be read until there is room; objects of less than 2 KiB always can. With --no-cross-namespace-refs, the default is 8Mi.")
	flags.StringVar(&o.eventsAddr, "events-addr", "", "The address of Flux's notification-controller, such as http://notification-controller.flux-system.svc.cluster.local./; empty sends no Flux events.")
}

// complete derives the other options from the given flags and the environment. Its errors
// are about the user's input.
func (o *options) complete(flags *flag.FlagSet) error {
	o.namespace, o.name = os.Getenv(runtimeNamespace), os.Getenv(runtimeName)
	o.webhooks = os.Getenv(enableWebhooks) != "false"
	for _, step := range []func(*flag.FlagSet) error{
		o.completeNamespace, o.completeServer, o.completeMetrics, o.completeSelection, o.completeControllers, o.completeReports, o.completeProbes,
		o.completeQuarantines, o.completeIdentity, o.completeTenancy,
	} {
		if err := step(flags); err != nil {
			return err
		}
	}
	return nil
}

// completeMetrics determines the certificate of the metrics. A certificate in files takes
// precedence.
func (o *options) completeMetrics(*flag.FlagSet) error {
	if o.metricsSecret == "" || o.metricsCertPath != "" || !o.metricsSecure || o.metricsAddr == "0" {
		return nil
	}
	if o.namespace == "" {
		return fmt.Errorf("--metrics-cert-secret needs the environment variable %s, which names its namespace", runtimeNamespace)
	}
	o.metricsCertificate = newMetricsCertificate(types.NamespacedName{Namespace: o.namespace, Name: o.metricsSecret})
	return nil
}

// completeSelection parses the options that define which objects are reconciled, and how.
func (o *options) completeSelection(*flag.FlagSet) error {
	if err := o.gates.SupportedFeatures(maps.Clone(featureDefaults)); err != nil {
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
			"which names the only namespace that is watched", runtimeNamespace)
	}
	return nil
}

// completeTenancy gives tenants that are kept apart no login of the controller, and limits
// their memory, unless something else is asked for.
func (o *options) completeTenancy(flags *flag.FlagSet) error {
	if !o.refs.NoCrossNamespaceRefs {
		return nil
	}
	if !isGiven(flags, noOwnLogin) {
		o.noOwnLogin = true
	}
	if !isGiven(flags, namespaceMemory) {
		o.namespaceMemory = memoryOfTenants
	}
	return nil
}

// completeControllers determines the wanted controllers. Without a watch of all
// namespaces, the controller of cluster schedules is off by default: an instance that
// sees all namespaces runs it, and Rollouts follow these schedules anyway. With a label
// selector, the coordinators are off by default: an instance without one runs them.
func (o *options) completeControllers(*flag.FlagSet) error {
	var err error
	if o.chosen, err = parseControllers(o.controllers.String()); err != nil {
		return fmt.Errorf("--controllers: %w", err)
	}
	if _, byName := o.chosen.wants(clusterScheduleController); byName && !o.allNamespaces {
		return fmt.Errorf("--controllers: %s needs --watch-all-namespaces", clusterScheduleController)
	}
	if !o.allNamespaces {
		o.chosen.leave(clusterScheduleController, clusterGateController)
	}
	if o.selector != nil {
		o.chosen.leave(coordinators...)
	}
	return nil
}

// namespaces returns the watched namespaces. None means all.
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

// caches returns the options of caches that contain only the objects that the started
// controllers read.
func (o *options) caches(starts map[string]bool) ctrlcache.Options {
	caches := ctrlcache.Options{DefaultTransform: cache.Bounded(ctrlcache.TransformStripManagedFields())}
	if promotes(starts) {
		caches = cache.Options(cache.Setting{Rollouts: o.selector, NamespaceMemory: int(o.namespaceMemory)})
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
	for only := range caches.DefaultNamespaces { // nothing that depends on labels is read of other Namespaces
		caches.ByObject[&corev1.Namespace{}] = ctrlcache.ByObject{Field: fields.OneTermEqualSelector(metav1.ObjectNameField, only)}
	}
	return caches
}

// lease returns the name of the Lease. Instances with different selectors do different
// work, and must not wait for each other.
func (o *options) lease() string {
	if o.selector == nil {
		return o.leaseID
	}
	return leaderelection.GenerateID(o.leaseID, o.selector.String())
}

// electionNamespace returns the namespace of the Lease. Empty means the namespace of the
// pod, and is an error outside of a pod.
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

// metrics returns the options of the metrics server. It also serves profiles, as every
// controller of Flux does, but only with authentication, or if no other machine can reach
// the server: a profile uses time and memory of the process.
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
