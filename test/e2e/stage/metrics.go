// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"net/http"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

// FreeAddress is one that nobody listens at.
func FreeAddress(t *testing.T) string {
	t.Helper()
	address, err := controlplane.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// Metric is the sum, over all labels, of a metric of the controller that serves
// them at an address.
func Metric(t *testing.T, address, name string) float64 {
	t.Helper()
	family := Metrics(t, address)[name]
	if family == nil {
		t.Fatalf("the controller has no metric %s", name)
	}
	var sum float64
	for _, m := range family.GetMetric() {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return sum
}

// Metrics are those of the controller that serves them at an address. The
// connection is closed again.
func Metrics(t *testing.T, address string) map[string]*dto.MetricFamily {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}
