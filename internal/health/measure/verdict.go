// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Verdict is the status that follows from measurements.
type Verdict struct {
	// Status is Healthy, Unhealthy or Pending.
	Status v1alpha1.HealthStatus
	// Message explains the status. It names numbers, and fits into a status.
	Message string
	// ErrorTime is when the first of the bad measurements in a row was made. It is zero
	// unless they made the status Unhealthy.
	ErrorTime time.Time
	// RecheckAt is when time alone changes the verdict; zero means never.
	RecheckAt time.Time
}

// Verdict returns the status at a time.
//
// The pace is the time from one measurement to the next at present. It is longer than the
// interval while no promotion depends on the HealthCheck, and zero if it is not measured:
// then time alone changes nothing.
func (c Count) Verdict(s Spec, pace time.Duration, now time.Time) Verdict {
	v := c.inTime(s, pace, now)
	if !s.Enforced && (c.measured() || v.Status == v1alpha1.HealthStatusHealthy) {
		v = v.notEnforced()
	}
	v.Message = fit(v.Message)
	return v
}

// Invalid returns the verdict on a HealthCheck that cannot be measured as it is. It is
// Pending, because nothing is known. If it is not enforced, it must not hold up a bake.
func Invalid(s Spec, problem string) Verdict {
	v := Verdict{Status: v1alpha1.HealthStatusPending, Message: "cannot be measured: " + problem}
	if !s.Enforced {
		v = v.notEnforced()
	}
	v.Message = fit(v.Message)
	return v
}

// NotMeasured returns the verdict on a HealthCheck that is not measured, although a promotion
// may depend on it. The message names the obstacle instead of what is missing, unless the check is
// Healthy. If it is not enforced, it must not hold up a bake.
func (v Verdict) NotMeasured(s Spec, obstacle string) Verdict {
	if v.Status == v1alpha1.HealthStatusHealthy {
		return v
	}
	v = Verdict{Status: v1alpha1.HealthStatusPending, Message: "not measured: " + obstacle}
	if !s.Enforced {
		v = v.notEnforced()
	}
	v.Message = fit(v.Message)
	return v
}

// inTime returns the verdict, or that nothing was observed for too long.
func (c Count) inTime(s Spec, pace time.Duration, now time.Time) Verdict {
	v := c.counted(s)
	stale := c.staleAt(s, pace)
	switch {
	case stale.IsZero():
		return v
	case !now.Before(stale):
		return Verdict{Status: v1alpha1.HealthStatusPending, Message: c.unobserved()}
	}
	v.RecheckAt = stale
	return v
}

// staleAt returns when the verdict does not stand any longer without a good or bad
// measurement for three intervals; zero if it does: the result of a Job stands until the next
// reset. While nothing has been measured, there is a verdict only if
// it was carried over a restart or a change.
func (c Count) staleAt(s Spec, pace time.Duration) time.Time {
	if s.Once() || pace <= 0 || !c.measured() && !c.carries() {
		return time.Time{}
	}
	return c.since().Add(staleIntervals * max(s.Interval, pace))
}

// since returns the time from which on there was no good or bad measurement.
func (c Count) since() time.Time {
	if c.decided.IsZero() {
		return c.began
	}
	return c.decided
}

// counted returns the verdict by the good and bad measurements in a row.
func (c Count) counted(s Spec) Verdict {
	switch {
	case c.good >= s.SuccessThreshold:
		return Verdict{Status: v1alpha1.HealthStatusHealthy, Message: c.inARow(s)}
	case c.bad >= s.FailureThreshold:
		return Verdict{Status: v1alpha1.HealthStatusUnhealthy, Message: c.inARow(s), ErrorTime: c.firstBad}
	case c.carries():
		return Verdict{Status: c.carried.Status, Message: c.carried.Message}
	}
	return Verdict{Status: v1alpha1.HealthStatusPending, Message: c.pending(s)}
}

// carries reports whether the verdict from before a restart stands. A bad measurement
// contradicts Healthy, and a good one contradicts Unhealthy.
func (c Count) carries() bool {
	switch c.carried.Status {
	case v1alpha1.HealthStatusHealthy:
		return c.bad == 0
	case v1alpha1.HealthStatusUnhealthy:
		return c.good == 0
	case v1alpha1.HealthStatusPending:
	}
	return false
}

// notEnforced returns the verdict on a HealthCheck whose bad results do not count.
func (v Verdict) notEnforced() Verdict {
	if v.Status == v1alpha1.HealthStatusHealthy {
		return v
	}
	return Verdict{
		Status: v1alpha1.HealthStatusHealthy, Message: "would be " + string(v.Status) + ": " + v.Message, RecheckAt: v.RecheckAt,
	}
}
