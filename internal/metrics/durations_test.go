// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"fmt"
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

// TestNumberOfSeriesIsLimited: whatever users create, a scrape stays below 3 MB, and a
// sum over the series of a kind counts all of its reconciliations.
func TestNumberOfSeriesIsLimited(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		objects, namespaces, series int
		name, namespace             bool // whether the series have these labels
	}{
		"a thousand objects":             {1000, 1000, 1000, true, true},
		"ten thousand in few namespaces": {10_000, 100, 100, false, true},
		"ten thousand in as many":        {10_000, 10_000, 1, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			durations := metrics.NewDurations(func() time.Time { return now }, nil)
			pass := func() {
				for namespace := range test.namespaces {
					names := make([]string, test.objects/test.namespaces)
					for i := range names {
						names[i] = fmt.Sprintf("web-%d", i)
					}
					durations.Together("Rollout", fmt.Sprintf("shop-%d", namespace), names, now)
				}
			}
			pass()
			before := counted(t, durations)
			pass()
			family := gathered(t, durations)[0]
			if got := len(family.Metric); got != test.series {
				t.Errorf("%d series, want %d", got, test.series)
			}
			for _, pair := range family.Metric[0].Label {
				if want := map[string]bool{"name": test.name, "namespace": test.namespace, "kind": true}[pair.GetName()]; want != (pair.GetValue() != "") {
					t.Errorf("the label %s is %q", pair.GetName(), pair.GetValue())
				}
			}
			if got := int(counted(t, durations) - before); got != test.objects {
				t.Errorf("%d reconciliations are counted, want %d", got, test.objects)
			}
			if size := len(strings.Join(exposition(t, durations), "\n")); size > 3_000_000 {
				t.Errorf("a scrape has %d bytes", size)
			}
		})
	}
}

// counted returns how many durations the series contain.
func counted(t *testing.T, durations *metrics.Durations) (n uint64) {
	t.Helper()
	for _, m := range gathered(t, durations)[0].Metric {
		n += m.Histogram.GetSampleCount()
	}
	return n
}
