// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Start is why counting begins anew.
type Start string

const (
	// AfterReset: the HealthCheck was reset for a promotion. Nothing from before counts.
	AfterReset Start = "AfterReset"
	// AfterRestart: the controller was restarted. The stored verdict stands until
	// measurements contradict it.
	AfterRestart Start = "AfterRestart"
	// AfterChange: the spec was changed. A stored Healthy is about the old spec, and does
	// not count. A stored Unhealthy stands until a good measurement: a change alone does
	// not show that anything works.
	AfterChange Start = "AfterChange"
)

// Stored is the verdict in a status.
type Stored struct {
	// Status is Healthy, Unhealthy or Pending; empty if there is none yet.
	Status v1alpha1.HealthStatus
	// Message of the status.
	Message string
	// Measurements of the status, the newest first.
	Measurements []v1alpha1.Measurement
	// Totals of the status.
	Totals Totals
}

// Count contains what the measurements since a start add up to. Create it with NewCount. It
// is a value: Add returns another one.
type Count struct {
	began    time.Time
	carried  Stored // the verdict that stands until measurements contradict it
	good     int    // in a row
	bad      int    // in a row
	totals   Totals // since the reset
	firstBad time.Time
	decided  time.Time     // the last good or bad measurement; zero if there is none
	last     Measurement   // since the start; its time is zero if there is none
	newest   []Measurement // the newest first, also from before a restart
}

// NewCount returns a count without measurements, at the time of a start.
func NewCount(start Start, stored Stored, now time.Time) Count {
	c := Count{began: now}
	switch start {
	case AfterReset:
		return c
	case AfterChange:
		if stored.Status != v1alpha1.HealthStatusUnhealthy {
			return c
		}
	case AfterRestart:
		c.totals = stored.Totals
	}
	c.newest = fromStatus(stored.Measurements)
	stored.Measurements = nil
	c.carried = stored
	return c
}

// Add returns the count with one more measurement. Measurements are added in the order of
// their times. A good one ends a row of bad ones, and a bad one a row of good ones. One
// that is neither changes no row.
func (c Count) Add(m Measurement, s Spec) Count {
	m = m.bounded()
	c.last, c.newest = m, prepend(m, c.newest)
	switch m.counted(s.NoData) {
	case v1alpha1.MeasurementGood:
		c.good, c.bad, c.decided = c.good+1, 0, m.At
		c.totals.Good++
	case v1alpha1.MeasurementBad:
		if c.bad == 0 {
			c.firstBad = m.At
		}
		c.good, c.bad, c.decided = 0, c.bad+1, m.At
		c.totals.Bad++
	case v1alpha1.MeasurementNoData, v1alpha1.MeasurementError:
	}
	return c
}

// Measurements returns the newest measurements for the status, the newest first, at most
// ten.
func (c Count) Measurements() []v1alpha1.Measurement { return toStatus(c.newest) }

// Totals returns how many measurements since the reset were good and bad.
func (c Count) Totals() Totals { return c.totals }

// Decided reports whether there was a good or bad measurement since the start.
func (c Count) Decided() bool { return !c.decided.IsZero() }

// Ended reports whether there were enough good or bad measurements in a row: a Job need not
// run again.
func (c Count) Ended(s Spec) bool { return c.good >= s.SuccessThreshold || c.bad >= s.FailureThreshold }

// LastMeasured returns the time of the newest measurement, also from before a restart; zero
// if there is none. One from before that is still to come counts as the restart: a clock was
// ahead.
func (c Count) LastMeasured() time.Time {
	switch {
	case len(c.newest) == 0:
		return time.Time{}
	case !c.measured() && c.newest[0].At.After(c.began):
		return c.began
	}
	return c.newest[0].At
}

// measured reports whether there was any measurement since the start.
func (c Count) measured() bool { return !c.last.At.IsZero() }
