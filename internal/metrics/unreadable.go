// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

var unreadable = prometheus.NewDesc("rollout_unreadable_objects",
	"Objects of this kind that the controller watches and cannot decode. What depends on them waits.",
	[]string{"kind"}, nil)

// Unreadable shows how many objects of each kind cannot be read.
func Unreadable(count func() map[string]int) prometheus.Collector { return unreadableCount(count) }

type unreadableCount func() map[string]int

// Describe implements prometheus.Collector.
func (unreadableCount) Describe(all chan<- *prometheus.Desc) { all <- unreadable }

// Collect implements prometheus.Collector.
func (count unreadableCount) Collect(all chan<- prometheus.Metric) {
	for kind, n := range count() {
		all <- prometheus.MustNewConstMetric(unreadable, prometheus.GaugeValue, float64(n), kind)
	}
}
