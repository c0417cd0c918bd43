// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
)

// While a release is young, others may count the time in which it is healthy. So its
// environment confirms again and again that it is, in growing steps: without that, nobody
// could tell health from a cluster that is switched off.
var steps = []struct{ below, pause time.Duration }{
	{10 * time.Minute, 10 * time.Minute},
	{40 * time.Minute, 30 * time.Minute},
	{100 * time.Minute, time.Hour},
	{220 * time.Minute, 2 * time.Hour},
	{7 * 24 * time.Hour, 6 * time.Hour},
}

// pauseAfter returns the pause before the next confirmation, of a release that has been
// healthy for a time; nil if none follows.
func pauseAfter(healthy time.Duration) *metav1.Duration {
	for _, step := range steps {
		if healthy < step.below {
			return &metav1.Duration{Duration: step.pause}
		}
	}
	return nil
}

// renewal returns when a release is to be confirmed next; zero if that is not planned.
func renewal(r *environmentsv1.Release) time.Time {
	if r.RenewedTime == nil || r.RenewAfter == nil {
		return time.Time{}
	}
	return r.RenewedTime.Add(r.RenewAfter.Duration)
}

// renew confirms a release that is healthy now, if that is due or something else has
// changed. While a HealthCheck says nothing, there is nothing to confirm.
func renew(v View, r, was *environmentsv1.Release, now time.Time) {
	r.RenewedTime, r.RenewAfter = was.RenewedTime, was.RenewAfter
	due := renewal(was)
	isDue := !due.IsZero() && (!now.Before(due) || was.RenewedTime.After(now)) // or the clock was ahead
	if was.HealthySince == nil || was.State != r.State || isDue && !v.Pending {
		r.RenewedTime, r.RenewAfter = &metav1.Time{Time: now.Truncate(time.Second)}, pauseAfter(r.Soaked.Duration)
	}
}

// Unheard returns when a release was last known to be healthy, if it was not confirmed
// for too long at a time; zero otherwise.
func Unheard(was *environmentsv1.Release, at time.Time) time.Time {
	if due := renewal(was); due.IsZero() || !at.After(was.RenewedTime.Add(was.GrantedFor())) {
		return time.Time{}
	}
	return was.RenewedTime.Time
}

// RenewalAt returns when the record must be looked at again, because the current release is
// to be confirmed; zero if that is not planned.
func RenewalAt(releases []environmentsv1.Release) time.Time {
	if current := Current(releases); current != nil {
		return renewal(current)
	}
	return time.Time{}
}
