// SPDX-License-Identifier: Apache-2.0

// Package environment derives what an environment says of the releases that it has
// deployed. Environments after it judge by that.
//
// All functions are pure. The clock of an environment only measures how long a release
// has been healthy there. No time of one environment is compared with the clock of
// another one, with one exception: the number of a report begins with the time of its
// cluster, and one that is a year ahead of the clock of the reader is refused. Package
// report does that.
package environment

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// MostReleases is how many releases an environment says something of: the most recently
// promoted ones.
const MostReleases = 30

// View is an environment as it was read.
type View struct {
	// Rollout that promotes releases to the environment.
	Rollout *v1alpha1.Rollout
	// Unhealthy names the HealthChecks of the Rollout that are Unhealthy; empty if none is.
	Unhealthy string
	// Pending is true if one of the HealthChecks says neither that it is Healthy nor that it
	// is Unhealthy.
	Pending bool
	// LastError is when one of the HealthChecks last saw an error; zero if none ever did.
	// It shows an interruption that was over before anybody looked.
	LastError time.Time
	// Recovered is since when those that saw an error are Healthy again; zero if none saw one,
	// or nobody says when that was.
	Recovered time.Time
	// Recorded is what the environment has said of its releases before. It has what the
	// history of the Rollout has no longer, and how long releases were healthy.
	Recorded []environmentsv1.Release

	now time.Time
}

// at returns the view as it is seen at a time. An error that is still to come is one of a clock
// that is ahead, and nobody knows when it was. It counts as now, unless it is recorded since when
// the current release has been healthy: otherwise each look would begin the soak anew.
func (v View) at(now time.Time) View {
	v.now = now
	v.Recovered = v.past(v.Recovered)
	if !v.LastError.After(now) {
		return v
	}
	v.LastError = now
	if current := v.Rollout.Current(); current != nil && recordedAs(v.Recorded, current).HealthySince != nil {
		v.LastError = time.Time{}
	}
	return v
}

// Source returns what the record of an Environment is of.
func Source(e *environmentsv1.Environment) string {
	return strings.Join([]string{e.Spec.Name, e.Spec.Environment, e.Spec.RolloutRef.Name}, "/")
}

// Recorded returns what an Environment has said of its releases. What it has said before its
// spec named another Rollout, application or environment does not count.
func Recorded(e *environmentsv1.Environment) []environmentsv1.Release {
	if e.Status.Source != "" && e.Status.Source != Source(e) {
		return nil
	}
	return e.Status.Releases
}

// Record returns what the environment says of its releases, measured by its own clock.
func Record(v View, now time.Time) []environmentsv1.Release {
	v = v.at(now)
	return newest(judged(v, func(r, was *environmentsv1.Release, entry *v1alpha1.DeploymentHistoryEntry) {
		r.Soaked = &metav1.Duration{}
		if v.Unhealthy != "" {
			r.Unhealthy = v.Unhealthy
			return
		}
		since := healthySince(v, was, entry, now)
		r.Soaked.Duration = max(0, now.Sub(since))
		if entry.UnprovenSince == nil { // otherwise the time stands still
			r.HealthySince = &metav1.Time{Time: since}
			renew(v, r, was, now)
		}
	}))
}

// healthySince returns since when the current release has been healthy, as a whole second.
// Where the time stood still in between, or nobody looked, it is later by that.
func healthySince(v View, was *environmentsv1.Release, entry *v1alpha1.DeploymentHistoryEntry, now time.Time) time.Time {
	since := now.Add(-baked(entry, v.LastError, now))
	switch {
	case was.HealthySince != nil:
		since = withoutGap(v, was, now)
	case was.Unhealthy != "":
		since = now
	case was.Soaked != nil:
		since = now.Add(-was.Soaked.Duration)
	}
	if entry.BakeStartTime != nil {
		since = later(since, entry.BakeStartTime.Add(entry.StoodStill(now)))
	}
	if v.LastError.After(since) {
		since = v.errorEnd()
	}
	if since = wholeSecond(since); since.After(now) { // the clock was ahead then
		return wholeSecond(now)
	}
	return since
}

// errorEnd returns when the last error of the HealthChecks was over, as far as that is known.
func (v View) errorEnd() time.Time { return later(v.LastError, v.Recovered) }

// Read returns what the environment says of its releases, for another environment that
// has a clock of its own. Only the bake counts of what is not recorded yet.
func Read(v View, now time.Time) []environmentsv1.Release {
	v = v.at(now)
	return newest(judged(v, func(r, was *environmentsv1.Release, entry *v1alpha1.DeploymentHistoryEntry) {
		r.Soaked = &metav1.Duration{}
		switch {
		case v.Unhealthy != "":
			r.Unhealthy = v.Unhealthy
		case was.Unhealthy != "":
			r.Unhealthy = was.Unhealthy
		case was.HealthySince != nil && !v.LastError.After(was.HealthySince.Time):
			r.HealthySince, r.Soaked, r.RenewedTime, r.RenewAfter = was.HealthySince, was.Soaked, was.RenewedTime, was.RenewAfter
		case was.HealthySince == nil:
			r.Soaked.Duration = baked(entry, v.LastError, time.Time{})
		}
		if r.HealthySince == nil && r.Unhealthy == "" { // nobody there has confirmed it yet
			r.RenewAfter = pauseAfter(r.Soaked.Duration)
		}
	}))
}

// withoutGap returns since when a release has been healthy by the record, without the time
// in which nobody looked. An error in that time is an interruption of unknown length. While
// a HealthCheck is Pending, nothing is confirmed, and the record stays as it is.
func withoutGap(v View, was *environmentsv1.Release, now time.Time) time.Time {
	switch last := Unheard(was, now); {
	case last.IsZero() || v.Pending:
		return was.HealthySince.Time
	case v.LastError.After(last):
		return now
	default:
		return was.HealthySince.Add(now.Sub(last))
	}
}

// wholeSecond returns the first full second at or after t: objects store whole seconds,
// and no stored time may make a soak longer than it was.
func wholeSecond(t time.Time) time.Time { return t.Add(time.Second - 1).Truncate(time.Second) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// ReadyReason returns why an Environment can be used or cannot; empty if its controller
// has not said so yet.
func ReadyReason(e *environmentsv1.Environment) string {
	for i := range e.Status.Conditions {
		if c := &e.Status.Conditions[i]; c.Type == v1alpha1.ReadyCondition {
			return c.Reason
		}
	}
	return ""
}

// Same reports whether two records say the same. How long the current release has been
// healthy changes all the time, and is not worth a write.
func Same(a, b []environmentsv1.Release) bool {
	return slices.EqualFunc(a, b, func(a, b environmentsv1.Release) bool {
		if a.Current && b.Current {
			a.Soaked, b.Soaked = nil, nil
		}
		return equality.Semantic.DeepEqual(a, b)
	})
}

// baked returns for how long a release was healthy in its bake, without the time in which
// the bake stood still. A bake that has no end yet lasts until now; a zero time means that
// the clock does not count.
func baked(entry *v1alpha1.DeploymentHistoryEntry, lastError, now time.Time) time.Duration {
	end := now
	if entry.BakeEndTime != nil {
		end = entry.BakeEndTime.Time
	}
	if entry.BakeStartTime == nil {
		return 0
	}
	return max(0, end.Sub(later(entry.BakeStartTime.Time, lastError))-entry.StoodStill(end))
}

func newest(releases []environmentsv1.Release) []environmentsv1.Release {
	slices.SortStableFunc(releases, func(a, b environmentsv1.Release) int {
		if a.Current != b.Current {
			if a.Current {
				return -1
			}
			return 1
		}
		return int(max(-1, min(1, b.ID-a.ID)))
	})
	return releases[:min(len(releases), MostReleases)]
}
