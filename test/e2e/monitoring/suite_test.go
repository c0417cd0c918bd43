// SPDX-License-Identifier: Apache-2.0

// Package monitoring runs a scenario of good and bad releases on a control plane of its own.
// A real Prometheus and kube-state-metrics watch it and evaluate every alert and every
// panel of the dashboard.
package monitoring

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
		Targets:         map[string]string{"rollout-controller": metricsAddress},
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
