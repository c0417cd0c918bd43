// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// wait is the recorded state of a Rollout's candidates.
type wait struct {
	// seen is since when each of the current candidates is known.
	seen map[string]time.Time
	// reason holds back the newest considered candidate since that time. It is empty if
	// none is held back.
	reason string
	since  time.Time
}

// waits shows how long releases wait, and for what.
type waits struct {
	promotion *prometheus.HistogramVec
	lead      prometheus.Histogram
	blocked   *prometheus.Desc
	time      *prometheus.Desc
	past      map[string]time.Duration // by reason, of holds that have ended
}

func newWaits() waits {
	w := waits{
		promotion: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rollout_promotion_wait_seconds",
			Help: "Time from a release being known as a candidate to its promotion, by what began it.",
			Buckets: seconds(time.Second, 10*time.Second, time.Minute, 5*time.Minute, 15*time.Minute, time.Hour, 4*time.Hour,
				12*time.Hour, day, 2*day, 7*day, 14*day),
		}, []string{"trigger"}),
		lead: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "rollout_environment_lead_time_seconds",
			Help: "Time from a release being proven in the environments before this one to its promotion.",
			Buckets: seconds(time.Second, 10*time.Second, time.Minute, 5*time.Minute, 15*time.Minute, time.Hour, 4*time.Hour,
				12*time.Hour, day, 2*day, 7*day, 14*day),
		}),
		blocked: prometheus.NewDesc("rollout_blocked",
			"Rollouts whose newest candidate is not promoted at present, by the first reason.", []string{"reason"}, nil),
		time: prometheus.NewDesc("rollout_blocked_seconds_total",
			"Time that Rollouts had a candidate that was not promoted, added up, by the first reason.", []string{"reason"}, nil),
		past: map[string]time.Duration{},
	}
	for _, trigger := range []string{automatic, manual} {
		w.promotion.WithLabelValues(trigger)
	}
	return w
}

// judge records the candidates, and what holds back the newest considered one.
func (w *waits) judge(of *wait, d promotion.Decision, now time.Time) {
	var seen map[string]time.Time
	if len(d.Candidates) > 0 {
		seen = make(map[string]time.Time, len(d.Candidates))
	}
	for _, candidate := range d.Candidates {
		tag := strings.Clone(candidate.Release.Tag) // kept for longer than the object that contains it
		seen[tag] = now
		if since, known := of.seen[tag]; known {
			seen[tag] = since
		}
	}
	of.seen = seen
	if reason := holding(d); reason != of.reason {
		w.end(of, now)
		of.reason, of.since = reason, now
	}
}

// holding returns the first reason against the newest considered candidate. It is empty
// if there is none.
func holding(d promotion.Decision) string {
	if d.Action.Promotes() || len(d.Candidates) == 0 {
		return ""
	}
	if newest := promotion.Considered(d.Candidates)[0]; !newest.Eligible() {
		return newest.Holds[0].Reason
	}
	return ""
}

// end adds the time of a hold that is over to the past times.
func (w *waits) end(of *wait, now time.Time) {
	if of.reason != "" {
		w.past[of.reason] += max(now.Sub(of.since), 0)
	}
	of.reason = ""
}

// promoted records how long the release that a stored decision has promoted had waited. A
// release that was not a candidate, for example an older one, did not wait.
func (w *waits) promoted(of *wait, d promotion.Decision, now time.Time) {
	since, waited := of.seen[d.Release.Tag]
	if !waited || d.Action != promotion.Promote && d.Action != promotion.Supersede {
		return
	}
	trigger := automatic
	if d.Manual {
		trigger = manual
	}
	observe(w.promotion.WithLabelValues(trigger), since, now)
}

// followed records how long ago the environments before this one had proven the release
// that is promoted now.
func (w *waits) followed(proven, now time.Time) {
	if !proven.IsZero() {
		observe(w.lead, proven, now)
	}
}

// Describe sends the descriptions of the metrics.
func (w *waits) Describe(descriptions chan<- *prometheus.Desc) {
	w.promotion.Describe(descriptions)
	w.lead.Describe(descriptions)
	descriptions <- w.blocked
	descriptions <- w.time
}

// collect adds the current waits to the past ones. A reason that was reported once stays,
// so its end is visible.
func (w *waits) collect(metrics chan<- prometheus.Metric, all map[types.NamespacedName]*known, now time.Time) {
	w.promotion.Collect(metrics)
	w.lead.Collect(metrics)
	count, total := map[string]int{}, map[string]time.Duration{}
	for reason, past := range w.past {
		count[reason], total[reason] = 0, past
	}
	for _, k := range all {
		if k.wait.reason != "" {
			count[k.wait.reason]++
			total[k.wait.reason] += max(now.Sub(k.wait.since), 0)
		}
	}
	for reason := range count {
		metrics <- prometheus.MustNewConstMetric(w.blocked, prometheus.GaugeValue, float64(count[reason]), reason)
		metrics <- prometheus.MustNewConstMetric(w.time, prometheus.CounterValue, total[reason].Seconds(), reason)
	}
}
