// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	fluxmetrics "github.com/fluxcd/pkg/runtime/metrics"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	corev1 "k8s.io/api/core/v1"

	"github.com/fluxrollouts/rollout-controller/internal/metrics"
)

// TestDurationsAreThoseOfFlux checks that the histograms are the same as those of Flux's
// own library.
func TestDurationsAreThoseOfFlux(t *testing.T) {
	flux, now := fluxmetrics.NewRecorder(), time.Now()
	durations := metrics.NewDurations(func() time.Time { return now }, nil)
	for name, all := range map[string][]time.Duration{
		"shop": {0, 80 * time.Millisecond, 80 * time.Millisecond, time.Second, 2 * time.Hour},
		"cart": {80 * time.Millisecond},
		"bill": {80 * time.Millisecond},
	} {
		for _, took := range all {
			flux.RecordDuration(corev1.ObjectReference{Kind: "Rollout", Namespace: name, Name: name}, time.Now().Add(-took))
			durations.Together("Rollout", name, []string{name}, now.Add(-took))
		}
	}
	if diff := cmp.Diff(exposition(t, flux.Collectors()...), exposition(t, durations)); diff != "" {
		t.Error(diff)
	}
}

// exposition returns the text that Prometheus reads, without the sums, which always
// differ.
func exposition(t *testing.T, collectors ...prometheus.Collector) []string {
	t.Helper()
	var text strings.Builder
	for _, family := range gathered(t, collectors...) {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
	}
	return slices.DeleteFunc(strings.Split(text.String(), "\n"), func(line string) bool { return strings.Contains(line, "_sum{") })
}
