// SPDX-License-Identifier: Apache-2.0

// Package monitoring runs a scenario of good and bad releases on a control plane of its own.
// A real Prometheus and kube-state-metrics watch it and evaluate every alert and every
// panel of the dashboard.
package monitoring

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/monitoring"
)

// plane is the control plane of the scenario.
var plane *env.Plane

// metricsAddress is the address at which the controller serves its metrics.
var metricsAddress string

func TestMain(m *testing.M) {
	var err error
	if metricsAddress, err = controlplane.FreeAddress(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	args := append([]string{
		"--metrics-bind-address=" + metricsAddress, "--metrics-secure=false",
		"--events-addr=http://127.0.0.1:9/", // no process listens there
	}, env.AsShipped...)
	os.Exit(env.Main(m, &plane, controlplane.Options{Flux: true, ImageScanner: true}, args...))
}

// late is what another controller exports that measures HealthChecks too late. The one of
// the scenario would need more than a minute to be late.
const late = "# TYPE rollout_probe_lag_seconds gauge\nrollout_probe_lag_seconds 75\n"

// startLate serves the metrics of the controller that is late.
func startLate(t *testing.T) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, late)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// watch starts the programs that watch the control plane, and returns a client for
// Prometheus.
func watch(t *testing.T) prometheusv1.API {
	t.Helper()
	config, _, err := monitoring.CustomResources()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "custom-resources.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	url, err := plane.StartMonitoring(context.Background(), controlplane.Monitoring{
		CustomResources: file,
		Rules:           []string{monitoring.File("rules.yaml")},
		Targets:         map[string]string{"rollout-controller": metricsAddress, "late": startLate(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	client, err := api.NewClient(api.Config{Address: url})
	if err != nil {
		t.Fatal(err)
	}
	return prometheusv1.NewAPI(client)
}
