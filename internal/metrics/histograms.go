// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// The histogram of durations is Flux's, to the letter: see metrics.Recorder of
// github.com/fluxcd/pkg/runtime.
var (
	durationBounds = prometheus.ExponentialBucketsRange(10e-3, 1800, durationBuckets) // seconds
	duration       = prometheus.NewDesc("gotk_reconcile_duration_seconds",
		"The duration in seconds of a GitOps Toolkit resource reconciliation.", []string{"kind", "name", "namespace"}, nil)
)

const durationBuckets = 10

// object is what durations are recorded of.
type object struct{ kind, namespace, name string }

// counts are those of the durations up to each bound, and of the longer ones.
type counts [durationBuckets + 1]uint32

// histogram is that of one object. There are thousands, and nearly all are alike:
// the library's own take ten times the memory, at rest and when they are asked for.
type histogram struct {
	counts counts
	sum    float64 // seconds
}

func (h *histogram) observe(seconds float64) {
	i, _ := slices.BinarySearch(durationBounds, seconds)
	h.counts[i]++
	h.sum += seconds
}

// measured is the histogram of an object as Prometheus asks for it.
type measured struct {
	object
	sum     float64
	count   uint64
	buckets []*dto.Bucket // shared with others of the same counts: nobody changes them
}

// Desc implements [prometheus.Metric].
func (measured) Desc() *prometheus.Desc { return duration }

// Write implements [prometheus.Metric].
func (m measured) Write(out *dto.Metric) error {
	out.Label = prometheus.MakeLabelPairs(duration, []string{m.kind, m.name, m.namespace})
	out.Histogram = &dto.Histogram{SampleCount: &m.count, SampleSum: &m.sum, Bucket: m.buckets}
	return nil
}

// measure returns the histograms as Prometheus wants them, where buckets count
// what the ones before them have counted as well.
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
