// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"flag"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fluxrollouts/rollout-controller/internal/controller"
)

// leaseName is the Lease that the controller's replicas contend for. It is the
// one that other controllers of this API use, so that two of them never run at
// the same time.
const leaseName = "8108ddc4.kuberik.com"

// options are the command-line flags. Their names are part of the contract
// with existing installations.
type options struct {
	metricsAddr     string
	metricsSecure   bool
	metricsCertPath string
	metricsCertName string
	metricsCertKey  string
	webhookCertPath string
	webhookCertName string
	webhookCertKey  string
	probeAddr       string
	leaderElect     bool
	leaseNamespace  string
	enableHTTP2     bool
	concurrent      int
	noCrossRefs     bool
	eventsAddr      string
	log             zap.Options
}

func (o *options) bind(flags *flag.FlagSet) {
	flags.StringVar(&o.metricsAddr, "metrics-bind-address", "0", "The address that metrics are served at; 0 serves none.")
	flags.BoolVar(&o.metricsSecure, "metrics-secure", true, "Serve metrics over HTTPS, to those who may read them.")
	flags.StringVar(&o.metricsCertPath, "metrics-cert-path", "", "The directory of the metrics server's certificate; one is made if empty.")
	flags.StringVar(&o.metricsCertName, "metrics-cert-name", "tls.crt", "The file name of the metrics server's certificate.")
	flags.StringVar(&o.metricsCertKey, "metrics-cert-key", "tls.key", "The file name of the metrics server's key.")
	flags.StringVar(&o.webhookCertPath, "webhook-cert-path", "", "Accepted for compatibility; there is no webhook.")
	flags.StringVar(&o.webhookCertName, "webhook-cert-name", "tls.crt", "Accepted for compatibility; there is no webhook.")
	flags.StringVar(&o.webhookCertKey, "webhook-cert-key", "tls.key", "Accepted for compatibility; there is no webhook.")
	flags.StringVar(&o.probeAddr, "health-probe-bind-address", ":8081", "The address that /healthz and /readyz are served at.")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "Let one of several replicas act at a time.")
	flags.StringVar(&o.leaseNamespace, "leader-election-namespace", "", "The namespace of the Lease; the controller's own if empty.")
	flags.BoolVar(&o.enableHTTP2, "enable-http2", false, "Serve metrics over HTTP/2 as well.")
	flags.IntVar(&o.concurrent, "concurrent", 10, "How many Rollouts are reconciled at a time.")
	flags.BoolVar(&o.noCrossRefs, "no-cross-namespace-refs", false, "Refuse HealthChecks that refer to Kustomizations of other namespaces.")
	flags.StringVar(&o.eventsAddr, "events-addr", "", "The address of Flux's notification-controller, such as http://notification-controller.flux-system.svc.cluster.local./; empty sends no Flux events.")
	o.log.Development = true
	o.log.BindFlags(flags)
}

func (o *options) manager() ctrl.Options {
	return ctrl.Options{
		Cache:                         controller.CacheOptions(),
		Metrics:                       o.metrics(),
		HealthProbeBindAddress:        o.probeAddr,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       o.leaseNamespace,
		LeaderElectionReleaseOnCancel: true, // main exits as soon as the manager has stopped
	}
}

func (o *options) metrics() metricsserver.Options {
	metrics := metricsserver.Options{
		BindAddress:   o.metricsAddr,
		SecureServing: o.metricsSecure,
		CertDir:       o.metricsCertPath,
		CertName:      o.metricsCertName,
		KeyName:       o.metricsCertKey,
	}
	if o.metricsSecure {
		metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	if !o.enableHTTP2 {
		metrics.TLSOpts = append(metrics.TLSOpts, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })
	}
	return metrics
}
