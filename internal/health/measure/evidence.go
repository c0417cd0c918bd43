// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// oneOf is the part of the measurements that may be bad at the end of a bake: one of so many.
const oneOf = 5

// Totals are how many measurements since the reset were good and bad.
type Totals struct{ Good, Bad int }

// totalsOf returns the totals of a status.
func totalsOf(s *v1alpha1.MeasuringStatus) Totals { return Totals{int(s.Good), int(s.Bad)} }

// Sum is how many there are.
func (t Totals) Sum() int { return t.Good + t.Bad }

// String says how many were bad; empty if none was.
func (t Totals) String() string {
	if t.Bad == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", t.Bad, t.Sum())
}

// TooManyBad reports whether so many measurements since the reset were bad that a release
// must not succeed, although the last ones may be good: more than a fifth, and as many as
// make the HealthCheck Unhealthy in a row. Fewer may all be about one moment. The text says
// how many.
func TooManyBad(check *v1alpha1.HealthCheck) (text string, tooMany bool) {
	if !check.IsMeasured() || !check.IsEnforced() {
		return "", false
	}
	t := totalsOf(&check.Status.MeasuringStatus)
	if t.Bad*oneOf <= t.Sum() || t.Bad < SpecOf(check).FailureThreshold {
		return "", false
	}
	return fmt.Sprintf("%s measurements were bad, which is more than a fifth", t), true
}

// StaleAt returns from when on what a HealthCheck has measured says nothing any more: three
// intervals after the newest measurement that was good or bad. It is zero if there is none in
// the status, and for a Job, whose result stands until the next reset. The status may lack the
// measurements of the last minute, so that is added.
func StaleAt(check *v1alpha1.HealthCheck) time.Time {
	s := SpecOf(check)
	if s.Once() {
		return time.Time{}
	}
	for _, m := range fromStatus(check.Status.Measurements) {
		switch m.counted(s.NoData) {
		case v1alpha1.MeasurementGood, v1alpha1.MeasurementBad:
			return m.At.Add(staleIntervals*s.Interval + writePace)
		case v1alpha1.MeasurementNoData, v1alpha1.MeasurementError:
		}
	}
	return time.Time{}
}

// LastValue returns what a HealthCheck measured last, and how many measurements since the
// reset were bad; empty if there is no value.
func LastValue(check *v1alpha1.HealthCheck) string {
	if !check.IsMeasured() || len(check.Status.Measurements) == 0 || check.Status.Measurements[0].Value == "" {
		return ""
	}
	value := check.Status.Measurements[0].Value
	if bad := totalsOf(&check.Status.MeasuringStatus).String(); bad != "" {
		return fmt.Sprintf("%s (%s bad)", value, bad)
	}
	return value
}
