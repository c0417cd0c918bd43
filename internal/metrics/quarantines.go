// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

var (
	quarantinesByPhase = prometheus.NewDesc("rollout_quarantines",
		"ReleaseQuarantines and ClusterReleaseQuarantines by phase. Those that are Held hold their releases, those that have Ended do not.",
		[]string{"phase"}, nil)

	quarantinePhases = []v1alpha1.QuarantinePhase{v1alpha1.QuarantineHeld, v1alpha1.QuarantineEnded}
)

// Quarantines shows how many quarantines of this process are in which phase. It is a
// [prometheus.Collector]. Its methods may be called from several goroutines, and do nothing
// if it is nil.
type Quarantines struct {
	mu     sync.Mutex
	phases map[types.NamespacedName]v1alpha1.QuarantinePhase
}

// NewQuarantines returns metrics without any quarantine.
func NewQuarantines() *Quarantines {
	return &Quarantines{phases: map[types.NamespacedName]v1alpha1.QuarantinePhase{}}
}

// Observe records the phase of a quarantine after it was stored. Quarantines of the cluster
// have no namespace.
func (m *Quarantines) Observe(key types.NamespacedName, phase v1alpha1.QuarantinePhase) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.phases[key] = phase
}

// Forget drops a quarantine that was deleted, or that another instance reconciles now.
func (m *Quarantines) Forget(key types.NamespacedName) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.phases, key)
}

// Describe implements [prometheus.Collector].
func (m *Quarantines) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- quarantinesByPhase
}

// Collect implements [prometheus.Collector].
func (m *Quarantines) Collect(metrics chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := map[v1alpha1.QuarantinePhase]int{}
	for _, phase := range m.phases {
		counts[phase]++
	}
	for _, phase := range quarantinePhases {
		metrics <- prometheus.MustNewConstMetric(quarantinesByPhase, prometheus.GaugeValue, float64(counts[phase]), string(phase))
	}
}
