// SPDX-License-Identifier: Apache-2.0

package prometheus

import "time"

const (
	// lookback is for how long Prometheus returns a sample if there is no newer one. It is
	// the default of Prometheus.
	lookback = 5 * time.Minute
	// precision is that of times in Prometheus.
	precision = time.Millisecond
)

// Question is a query, and for which time it is evaluated.
type Question struct {
	// Query is what is sent. All variables have been replaced.
	Query string
	// At is the time of the evaluation.
	At time.Time
	// Since is when the HealthCheck was reset. Older samples are not evidence, so a plain
	// selector does not return them; see spec.prometheus.window for ranges within the
	// query. It is zero if there was no reset, and for a baseline.
	Since time.Time
	// Timeout is how long the evaluation and the transfer may take, together.
	Timeout time.Duration
}

// lookbackDelta returns for how long a query may look back: not beyond the reset, whose own
// moment it excludes.
func (q Question) lookbackDelta() time.Duration {
	if q.Since.IsZero() {
		return lookback
	}
	return max(precision, min(lookback, q.At.Sub(q.Since)))
}
