// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
)

// Groups provides the metrics of rollout groups of StatefulSets. The names and labels are
// those of an existing controller, except the label for the namespace. The series of a
// group end with the group.
type Groups struct {
	collectors
	passes   *prometheus.CounterVec
	failures *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	success  *prometheus.GaugeVec
	blocked  *prometheus.GaugeVec
}

// NewGroups returns metrics without any group.
func NewGroups() *Groups {
	labels := []string{"namespace", "rollout_group"}
	g := &Groups{
		passes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollout_operator_group_reconciles_total",
			Help: "Passes over a rollout group.",
		}, labels),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollout_operator_group_reconciles_failed_total",
			Help: "Passes over a rollout group that failed, or found it invalid.",
		}, labels),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "rollout_operator_group_reconcile_duration_seconds",
			Help:    "Time that a pass over a rollout group takes.",
			Buckets: prometheus.DefBuckets,
		}, labels),
		success: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "rollout_operator_last_successful_group_reconcile_timestamp_seconds",
			Help: "When the last pass over a rollout group ended that did not fail.",
		}, labels),
		blocked: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "rollout_operator_group_blocked",
			Help: "1 while pods of a rollout group are outdated and may not be replaced, by the reason.",
		}, append(labels, "reason")),
	}
	g.collectors = collectors{g.passes, g.failures, g.seconds, g.success, g.blocked}
	return g
}

// Reconciled counts a pass over a group.
func (g *Groups) Reconciled(group types.NamespacedName, begun, ended time.Time, failed bool) {
	if g == nil {
		return
	}
	g.passes.WithLabelValues(group.Namespace, group.Name).Inc()
	g.seconds.WithLabelValues(group.Namespace, group.Name).Observe(max(ended.Sub(begun), 0).Seconds())
	failures := g.failures.WithLabelValues(group.Namespace, group.Name)
	if failed {
		failures.Inc()
		return
	}
	g.success.WithLabelValues(group.Namespace, group.Name).Set(float64(ended.UnixMilli()) / 1000)
}

// Blocked sets the reason why pods of the group are not replaced. It is empty if nothing
// prevents it.
func (g *Groups) Blocked(group types.NamespacedName, reason string) {
	if g == nil {
		return
	}
	for _, known := range rolloutgroup.BlockedReasons() {
		value := 0.0
		if known == reason {
			value = 1
		}
		g.blocked.WithLabelValues(group.Namespace, group.Name, known).Set(value)
	}
}

// Forget removes the series of a group.
func (g *Groups) Forget(group types.NamespacedName) {
	if g == nil {
		return
	}
	its := prometheus.Labels{"namespace": group.Namespace, "rollout_group": group.Name}
	g.passes.DeletePartialMatch(its)
	g.failures.DeletePartialMatch(its)
	g.seconds.DeletePartialMatch(its)
	g.success.DeletePartialMatch(its)
	g.blocked.DeletePartialMatch(its)
}
