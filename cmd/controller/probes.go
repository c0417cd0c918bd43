// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	fluxfeatures "github.com/fluxcd/pkg/runtime/features"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fluxrollouts/rollout-controller/internal/controller/measurement"
	"github.com/fluxrollouts/rollout-controller/internal/health/class"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/job"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/object"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
	"github.com/fluxrollouts/rollout-controller/internal/health/pool"
)

// protectedFor is how long the addresses of the API server are kept, which no request of a
// tenant may reach.
const protectedFor = time.Minute

// newGuard returns what checks the addresses of all requests that tenants cause.
func newGuard(reader client.Reader) destination.Guard {
	return destination.Guard{Protected: destination.ProtectedIn(reader).Every(protectedFor, clock.RealClock{}), AllowLoopback: allowLoopback}
}

// probeOptions say what HealthChecks may ask.
type probeOptions struct {
	destinations texts
	prometheus   string
	credentials  string
	concurrent   int

	allowed destination.List
}

func (o *probeOptions) bind(flags *flag.FlagSet) {
	flags.Var(&o.destinations, "health-destinations", "A destination that HealthChecks may use beyond the Services of their own namespace: scheme://host or scheme://host:port. *. before the host allows all hosts with that ending that have public addresses. May be given several times.")
	flags.StringVar(&o.prometheus, "prometheus-address", "", "The Prometheus of HealthChecks that name none, such as http://prometheus.monitoring.svc:9090; HealthChecks of every namespace may ask it.")
	flags.StringVar(&o.credentials, "prometheus-credentials", "", "The Secret in the controller's own namespace with what is sent to --prometheus-address, and nowhere else, for HealthChecks that name no Prometheus: token, or username and password; ca.crt, tls.crt and tls.key; headers, lines of Name: value.")
	flags.IntVar(&o.concurrent, "concurrent-probes", 16, "How many HealthChecks are measured at a time. At most half are of one namespace; at most four use one host and port, two of them of one namespace.")
}

// texts are the values of a flag that may be given several times.
type texts []string

// String returns the values as one text.
func (t *texts) String() string { return strings.Join(*t, ",") }

// Set adds a value.
func (t *texts) Set(value string) error {
	*t = append(*t, value)
	return nil
}

func (o *options) completeProbes(*flag.FlagSet) (err error) {
	p := &o.probes
	if p.concurrent < 1 {
		return fmt.Errorf("--concurrent-probes must be at least 1")
	}
	if p.allowed, err = destination.ParseList(p.destinations); err != nil {
		return fmt.Errorf("--health-destinations: %w", err)
	}
	switch {
	case p.credentials != "" && p.prometheus == "":
		return fmt.Errorf("--prometheus-credentials needs --prometheus-address, which is where they are sent")
	case p.credentials != "" && o.namespace == "":
		return fmt.Errorf("--prometheus-credentials needs the environment variable %s, which names the Secret's namespace", runtimeNamespace)
	case p.prometheus == "":
		return nil
	}
	if p.allowed, err = p.allowed.With(p.prometheus); err != nil {
		return fmt.Errorf("--prometheus-address: %w", err)
	}
	return nil
}

// registerMeasurements adds the controller of HealthChecks that are measured.
func (w wiring) registerMeasurements(ctx context.Context) error {
	enabled, err := fluxfeatures.Enabled(healthProbes)
	if err != nil || !enabled {
		return err
	}
	log := w.GetLogger().WithName("measurements")
	measurements := pool.New(clock.RealClock{}, w.probes.concurrent, func(check types.NamespacedName, cause any) {
		log.Error(nil, "a measurement of a HealthCheck panicked", "healthcheck", check.String(), "cause", fmt.Sprint(cause))
	})
	if err := runtimemetrics.Registry.Register(lagOf(measurements)); err != nil {
		return fmt.Errorf("register the lag of measurements: %w", err)
	}
	checks := &measurement.Reconciler{
		Client: w.GetClient(), Pool: measurements, Now: time.Now, Shard: w.shard, Durations: w.timed,
		Means: class.Means{
			Guard: w.guard, Allowed: w.probes.allowed, Prometheus: w.probes.prometheus, PrometheusSecret: w.ownSecret(w.probes.credentials), Reader: w.live.Keeping(destination.Kept()), Clock: clock.RealClock{},
			Objects: &object.Reader{Objects: w.live.Objects, Mapper: w.GetRESTMapper(), Now: time.Now},
			Jobs:    &job.Runner{Reader: w.live.Keeping(job.Kept()), Writer: w.GetClient()},
		},
	}
	return checks.SetupWithManager(ctx, w, w.controller())
}

func lagOf(measurements *pool.Pool) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rollout_probe_lag_seconds",
		Help: "For how long the measurement of a HealthCheck that waits longest has been due.",
	}, func() float64 { return measurements.Lag().Seconds() })
}
