// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// What started a promotion.
const (
	automatic = "automatic" // the controller chose the release
	manual    = "manual"    // a user chose the release
	retry     = "retry"     // a user retries a failed promotion
	adoption  = "adoption"  // the history was lost, and the running version became its first entry
	tagMoved  = "tag_moved" // the current tag was pushed again, without any choice
)

// results are the final states of a promotion.
var results = []v1alpha1.BakeStatus{v1alpha1.BakeSucceeded, v1alpha1.BakeFailed, v1alpha1.BakeCancelled}

// entry is the recorded part of the newest history entry.
type entry struct {
	id    int64 // zero in old entries
	tag   string
	at    metav1.Time
	state v1alpha1.BakeStatus
}

// promotions counts promotions and records how long their parts took.
type promotions struct {
	collectors
	started *prometheus.CounterVec
	ended   *prometheus.CounterVec
	deploy  *prometheus.HistogramVec
	bake    *prometheus.HistogramVec
	restore prometheus.Histogram
}

func newPromotions() promotions {
	byResult := []string{"result"}
	p := promotions{
		started: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollout_promotions_started_total",
			Help: "Promotions that were begun, by what began them.",
		}, []string{"trigger"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollout_promotions_total",
			Help: "Promotions that have ended, by their result.",
		}, byResult),
		deploy: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rollout_deploy_duration_seconds",
			Help: "Time from a promotion, or its retry, until every target had applied it and was healthy, or until it ended otherwise.",
			Buckets: seconds(time.Second, 5*time.Second, 15*time.Second, 30*time.Second, time.Minute, 2*time.Minute, 5*time.Minute,
				10*time.Minute, 20*time.Minute, 30*time.Minute, time.Hour, 3*time.Hour),
		}, byResult),
		bake: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rollout_bake_duration_seconds",
			Help: "Time from the start of a bake to its end, by its result.",
			Buckets: seconds(10*time.Second, time.Minute, 5*time.Minute, 10*time.Minute, 20*time.Minute, 30*time.Minute,
				time.Hour, 2*time.Hour, 4*time.Hour, 12*time.Hour, day, 3*day),
		}, byResult),
		restore: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "rollout_restore_duration_seconds",
			Help: "Time from a failed promotion to the next success of the same Rollout, whichever release that was.",
			Buckets: seconds(time.Minute, 5*time.Minute, 10*time.Minute, 30*time.Minute, time.Hour, 2*time.Hour, 4*time.Hour,
				8*time.Hour, day, 2*day, 7*day),
		}),
	}
	p.collectors = collectors{p.started, p.ended, p.deploy, p.bake, p.restore}
	for _, trigger := range []string{automatic, manual, retry, adoption, tagMoved} {
		p.started.WithLabelValues(trigger)
	}
	for _, result := range results {
		p.ended.WithLabelValues(string(result))
		p.deploy.WithLabelValues(string(result))
		p.bake.WithLabelValues(string(result))
	}
	return p
}

// begun counts what a stored decision has started.
func (p *promotions) begun(d promotion.Decision) {
	switch {
	case d.Action == promotion.Adopt:
		p.started.WithLabelValues(adoption).Inc()
	case d.Action == promotion.Retry:
		p.started.WithLabelValues(retry).Inc()
	case d.Reason == v1alpha1.TagMovedReason:
		p.started.WithLabelValues(tagMoved).Inc()
	case d.Action.Promotes() && d.Manual:
		p.started.WithLabelValues(manual).Inc()
	case d.Action.Promotes():
		p.started.WithLabelValues(automatic).Inc()
	}
}

// firstSight records the status as it is, without counting it.
func firstSight(status *v1alpha1.RolloutStatus) *known {
	history, k := status.History, &known{back: rollbackOf(status)}
	if len(history) > 0 {
		k.entry = entryOf(&history[0])
	}
	for i := range history {
		if history[i].State() == v1alpha1.BakeSucceeded {
			break
		}
		if end := history[i].BakeEndTime; history[i].State() == v1alpha1.BakeFailed && end != nil {
			k.failed = end.Time
		}
	}
	return k
}

// follow counts the changes of the newest promotions since the last call, no matter who
// wrote them.
func (p *promotions) follow(k *known, history []v1alpha1.DeploymentHistoryEntry, now time.Time) {
	if len(history) == 0 {
		k.entry, k.failed = entry{}, time.Time{}
		return
	}
	if !k.entry.is(&history[0]) {
		p.replaced(k, history[1:], now)
		k.entry = entryOf(&history[0])
		k.entry.state = ""
	}
	p.advanced(k, &history[0], now)
}

// replaced counts the end of the promotion that was the newest, if it had none. The new
// history may no longer contain it.
func (p *promotions) replaced(k *known, history []v1alpha1.DeploymentHistoryEntry, now time.Time) {
	if !k.entry.state.Running() {
		return
	}
	for i := range history {
		if k.entry.is(&history[i]) {
			p.advanced(k, &history[i], now)
			return
		}
	}
	p.ended.WithLabelValues(string(v1alpha1.BakeCancelled)).Inc()
}

// advanced counts a change of a promotion's state.
func (p *promotions) advanced(k *known, e *v1alpha1.DeploymentHistoryEntry, now time.Time) {
	was, is := k.entry.state, e.State()
	k.entry.state = is
	if was == is {
		return
	}
	if was == "" || was.Running() {
		p.count(was, e, now)
	}
	switch is {
	case v1alpha1.BakeSucceeded:
		if !k.failed.IsZero() {
			observe(p.restore, k.failed, momentOr(e.BakeEndTime, now))
		}
		k.failed = time.Time{}
	case v1alpha1.BakeFailed:
		if k.failed.IsZero() {
			k.failed = momentOr(e.BakeEndTime, now)
		}
	case v1alpha1.BakeDeploying, v1alpha1.BakeInProgress, v1alpha1.BakeCancelled:
	}
}

// count records the part of a promotion that is over: the deployment, the bake, or the
// whole promotion. The entry itself contains the times that apply.
func (p *promotions) count(was v1alpha1.BakeStatus, e *v1alpha1.DeploymentHistoryEntry, now time.Time) {
	result, end := e.State(), momentOr(e.BakeEndTime, now)
	deployed := result
	if e.BakeStartTime != nil {
		deployed, end = v1alpha1.BakeSucceeded, e.BakeStartTime.Time
	}
	if was == v1alpha1.BakeDeploying && (e.BakeStartTime != nil || isResult(result)) {
		observe(p.deploy.WithLabelValues(string(deployed)), e.Cutoff().Time, end)
	}
	if !isResult(result) {
		return
	}
	p.ended.WithLabelValues(string(result)).Inc()
	if was == v1alpha1.BakeInProgress && e.BakeStartTime != nil {
		observe(p.bake.WithLabelValues(string(result)), e.BakeStartTime.Time, momentOr(e.BakeEndTime, now))
	}
}

// observe adds a duration to a histogram. The times come from the status, and other
// clocks may have written them. Therefore negative durations count as zero.
func observe(histogram prometheus.Observer, from, to time.Time) {
	histogram.Observe(max(to.Sub(from), 0).Seconds())
}

func momentOr(t *metav1.Time, now time.Time) time.Time {
	if t == nil {
		return now
	}
	return t.Time
}

func isResult(state v1alpha1.BakeStatus) bool {
	return state == v1alpha1.BakeSucceeded || state == v1alpha1.BakeFailed || state == v1alpha1.BakeCancelled
}

// entryOf copies the tag, which may be a small part of an object that should not stay in
// memory as long.
func entryOf(e *v1alpha1.DeploymentHistoryEntry) entry {
	return entry{id: ptr.Deref(e.ID, 0), tag: strings.Clone(e.Version.Tag), at: e.Timestamp, state: e.State()}
}

// is reports whether this is the same promotion, regardless of its state.
func (e entry) is(other *v1alpha1.DeploymentHistoryEntry) bool {
	return e.id == ptr.Deref(other.ID, 0) && e.tag == other.Version.Tag && e.at.Equal(&other.Timestamp)
}

// collectors are one collector.
type collectors []prometheus.Collector

// Describe implements [prometheus.Collector].
func (all collectors) Describe(descriptions chan<- *prometheus.Desc) {
	for _, c := range all {
		c.Describe(descriptions)
	}
}

// Collect implements [prometheus.Collector].
func (all collectors) Collect(metrics chan<- prometheus.Metric) {
	for _, c := range all {
		c.Collect(metrics)
	}
}
