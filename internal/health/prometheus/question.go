// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"time"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

const (
	// lookback is for how long Prometheus returns a sample if there is no newer one. It is
	// the default of Prometheus.
	lookback = 5 * time.Minute
	// usualLookback is enough for most scrape intervals.
	usualLookback = time.Minute
	// precision is that of times in Prometheus.
	precision = time.Millisecond
)

// Question is a query, and for which time it is evaluated.
type Question struct {
	// Query is what is sent. All variables have been replaced.
	Query string
	// At is the time of the evaluation, or the end of the range.
	At time.Time
	// Range is nil for an instant query. measure.ProblemOf must have found nothing in it.
	Range *v1alpha1.PrometheusRange
	// Since is when the HealthCheck was reset. Older samples are not evidence, so a plain
	// selector does not return them; see spec.prometheus.window for ranges within the
	// query. It is zero if there was no reset, and for a baseline.
	Since time.Time
	// Delay is the time after the reset before which a range does not begin.
	Delay time.Duration
	// Timeout is how long the evaluation and the transfer may take, together.
	Timeout time.Duration
}

// Baseline returns the question for what the value is compared with: another query, with
// the variables of the release before, at the moment of the promotion. It is always an
// instant query.
func (q Question) Baseline(query string, promotedAt time.Time) Question {
	return Question{Query: query, At: promotedAt, Timeout: q.Timeout}
}

// lookbackDelta returns for how long an instant query may look back: not beyond the
// reset, whose own moment it excludes.
func (q Question) lookbackDelta() time.Duration {
	if q.Since.IsZero() {
		return lookback
	}
	return max(precision, min(lookback, q.At.Sub(q.Since)))
}

// span returns the range, and for how long each of its points may look back. Even the
// first point must not see a sample from before the reset. So a range that would begin
// at the reset begins later. Then the time since the reset is divided between looking
// back and the range. The last point is at q.At.
func (q Question) span() (prometheusv1.Range, time.Duration) {
	step, begin, back := q.Range.Step.Duration, q.At.Add(-q.Range.Over.Duration), lookback
	if !q.Since.IsZero() {
		if earliest := q.Since.Add(q.Delay); begin.Before(earliest) {
			begin = earliest
		}
		half := min(usualLookback, q.At.Sub(q.Since)/2)
		back = max(precision, min(lookback, max(half, begin.Sub(q.Since))))
		if earliest := q.Since.Add(back); begin.Before(earliest) {
			begin = earliest
		}
	}
	if whole := q.At.Sub(begin).Truncate(step); whole > 0 {
		return prometheusv1.Range{Start: q.At.Add(-whole), End: q.At, Step: step}, back
	}
	return prometheusv1.Range{Start: q.At, End: q.At, Step: step}, back
}
