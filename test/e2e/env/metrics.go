// SPDX-License-Identifier: Apache-2.0

package env

import (
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// FreeAddress returns an address that no process uses.
func FreeAddress(t *testing.T) string {
	t.Helper()
	address, err := controlplane.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// Metric returns the sum, over all labels, of a metric of the controller that serves
// metrics at an address.
func Metric(t *testing.T, address, name string) float64 {
	t.Helper()
	family := Metrics(t, address)[name]
	if family == nil {
		t.Fatalf("the controller has no metric %s", name)
	}
	return scenario.Total(family.GetMetric())
}

// Metrics returns the metrics of the controller that serves them at an address.
func Metrics(t *testing.T, address string) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := scenario.Metrics(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return families
}
