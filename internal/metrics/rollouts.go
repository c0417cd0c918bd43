// SPDX-License-Identifier: Apache-2.0

// Package metrics counts what Rollouts do, for Prometheus.
//
// It uses the passes that the controller makes anyway, and costs nothing between them:
// values that grow by time alone are computed when they are requested. No label names an
// object, except in Flux's own duration of reconciliations. kube-state-metrics reads the
// state of each Rollout.
//
// In reading order:
//
//	rollouts.go      what is known of each Rollout, and when it is recorded
//	promotions.go    promotions, deployments, bakes and recoveries, counted as they end
//	rollbacks.go     what became of automatic rollbacks
//	waits.go         what candidates wait for, and how long they waited
//	approvals.go     promotions past approvals, and whether approvals count
//	gauges.go        how many Rollouts and targets are in which state
//	quarantines.go   how many quarantines are in which phase
//	durations.go     Flux's duration of reconciliations
//	histograms.go    how durations are stored and shown
//	build.go         the version that runs
package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// Pass contains what one pass over a Rollout has found and done.
type Pass struct {
	// Before is the Rollout as it was read.
	Before *v1alpha1.Rollout
	// Stored is the Rollout with the status that the pass has written. It is nil if the
	// pass wrote none.
	Stored *v1alpha1.Rollout
	// Status is the status that the pass has computed, whether or not it needed a write.
	Status *v1alpha1.RolloutStatus
	// Decision is the decision of the pass.
	Decision promotion.Decision
	// Proven is since when the environments before this one had proven the release that the
	// pass promotes; zero if they had not.
	Proven time.Time
	// Verified says whether the API server vouches for the names in approvals; nil if no gate
	// asks for any.
	Verified *bool
}

// Rollouts counts what the Rollouts of this process do. It is a [prometheus.Collector].
// Its methods may be called from several goroutines, and do nothing if it is nil.
//
// It counts only what it has observed itself: after a restart, the counters start at
// zero, and a release that already waits counts as new.
type Rollouts struct {
	now   func() time.Time
	mu    sync.Mutex
	known map[types.NamespacedName]*known

	promotions promotions
	rollbacks  rollbacks
	waits      waits
	gauges     gauges
	approvals  approvals
}

// known is the last observation of one Rollout.
type known struct {
	entry   entry
	failed  time.Time // when the first of the newest promotions in a row failed; zero if the newest have not
	back    rollback
	wait    wait
	summary summary

	verified *bool // as in the last pass
}

// NewRollouts returns the metrics of Rollouts, with the given clock.
func NewRollouts(now func() time.Time) *Rollouts {
	return &Rollouts{
		now:        now,
		known:      map[types.NamespacedName]*known{},
		promotions: newPromotions(),
		rollbacks:  newRollbacks(),
		waits:      newWaits(),
		gauges:     newGauges(),
		approvals:  newApprovals(),
	}
}

// Observe records a pass after its status was stored.
func (m *Rollouts) Observe(pass Pass) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key, now := client.ObjectKeyFromObject(pass.Before), m.now()
	k := m.known[key]
	if k == nil {
		k = firstSight(&pass.Before.Status)
		m.known[key] = k
	}
	m.follow(k, &pass.Before.Status, now) // changes by others
	m.waits.judge(&k.wait, pass.Decision, now)
	if pass.Stored != nil {
		m.promotions.begun(pass.Decision)
		m.approvals.recorded(pass)
		m.follow(k, &pass.Stored.Status, now)
		m.waits.promoted(&k.wait, pass.Decision, now)
		m.waits.followed(pass.Proven, now)
	}
	k.summary, k.verified = summarise(pass.Status), pass.Verified
}

// follow counts what the status shows since the last call.
func (m *Rollouts) follow(k *known, status *v1alpha1.RolloutStatus, now time.Time) {
	m.promotions.follow(k, status.History, now)
	m.rollbacks.follow(&k.back, status)
}

// Forget drops the state of a Rollout that was deleted or is no longer managed. It does
// not reduce the counters.
func (m *Rollouts) Forget(key types.NamespacedName) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.known[key]; k != nil {
		m.waits.end(&k.wait, m.now())
		delete(m.known, key)
	}
}

// Describe implements [prometheus.Collector].
func (m *Rollouts) Describe(descriptions chan<- *prometheus.Desc) {
	m.promotions.Describe(descriptions)
	m.rollbacks.Describe(descriptions)
	m.waits.Describe(descriptions)
	m.gauges.Describe(descriptions)
	m.approvals.Describe(descriptions)
}

// Collect implements [prometheus.Collector].
func (m *Rollouts) Collect(metrics chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.promotions.Collect(metrics)
	m.rollbacks.Collect(metrics)
	m.waits.collect(metrics, m.known, m.now())
	m.gauges.collect(metrics, m.known)
	m.approvals.collect(metrics, m.known)
}

// seconds returns the bounds of a histogram's buckets in seconds.
func seconds(bounds ...time.Duration) []float64 {
	all := make([]float64, 0, len(bounds))
	for _, bound := range bounds {
		all = append(all, bound.Seconds())
	}
	return all
}

const day = 24 * time.Hour
