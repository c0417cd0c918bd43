// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics reads the metrics of the controller that serves them at an address. It closes
// the connection.
func Metrics(ctx context.Context, address string) (map[string]*dto.MetricFamily, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask for metrics: %w", err)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask for metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return families, nil
}

// Labelled returns the series of a metric that have a label with this value.
func Labelled(family *dto.MetricFamily, label, value string) []*dto.Metric {
	var found []*dto.Metric
	for _, m := range family.GetMetric() {
		if Label(m, label) == value {
			found = append(found, m)
		}
	}
	return found
}

// Label returns the value of a label, or "" without the label.
func Label(m *dto.Metric, name string) string {
	for _, label := range m.GetLabel() {
		if label.GetName() == name {
			return label.GetValue()
		}
	}
	return ""
}

// Total returns the sum of the values of counters and gauges.
func Total(all []*dto.Metric) float64 {
	total := 0.0
	for _, m := range all {
		total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return total
}
