// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// The histogram of durations is exactly the same as Flux's: see metrics.Recorder of
// github.com/fluxcd/pkg/runtime.
var (
	durationBounds = prometheus.ExponentialBucketsRange(10e-3, 1800, durationBuckets) // seconds
	duration       = prometheus.NewDesc("gotk_reconcile_duration_seconds",
		"The duration in seconds of a GitOps Toolkit resource reconciliation.", []string{"kind", "name", "namespace"}, nil)
)

const durationBuckets = 10

// object identifies the object that durations are recorded for.
type object struct{ kind, namespace, name string }

// counts are the numbers of durations in each bucket, and of the longer ones.
type counts [durationBuckets + 1]uint32

// histogram contains the durations of one object. There are thousands of objects, and
// nearly all histograms are alike: those of the library need ten times the memory, both
// permanently and during a scrape.
type histogram struct {
	counts counts
	sum    float64 // seconds
}

func (h *histogram) observe(seconds float64) {
	i, _ := slices.BinarySearch(durationBounds, seconds)
	h.counts[i]++
	h.sum += seconds
}

// measured is the histogram of an object in the form that Prometheus needs.
type measured struct {
	object
	sum     float64
	count   uint64
	buckets []*dto.Bucket // shared with others of the same counts: never modified
}

// Desc implements [prometheus.Metric].
func (measured) Desc() *prometheus.Desc { return duration }

// Write implements [prometheus.Metric].
func (m measured) Write(out *dto.Metric) error {
	out.Label = prometheus.MakeLabelPairs(duration, []string{m.kind, m.name, m.namespace})
	out.Histogram = &dto.Histogram{SampleCount: &m.count, SampleSum: &m.sum, Bucket: m.buckets}
	return nil
}

// measure returns the histograms in the form that Prometheus needs. There, each bucket
// also counts the buckets before it.
func measure(all map[object]*histogram) []measured {
	known := map[counts][]*dto.Bucket{}
	list := make([]measured, 0, len(all))
	for o, h := range all {
		buckets, ok := known[h.counts]
		if !ok {
			buckets = h.counts.buckets()
			known[h.counts] = buckets
		}
		m := measured{object: o, sum: h.sum, buckets: buckets}
		for _, n := range h.counts {
			m.count += uint64(n)
		}
		list = append(list, m)
	}
	return list
}

func (c counts) buckets() []*dto.Bucket {
	all := make([]*dto.Bucket, len(durationBounds))
	var total uint64
	for i := range durationBounds {
		total += uint64(c[i])
		all[i] = &dto.Bucket{CumulativeCount: new(total), UpperBound: &durationBounds[i]}
	}
	return all
}
