// SPDX-License-Identifier: Apache-2.0

// Package activity decides when a HealthCheck is measured next. At rest nothing is
// measured: only while a promotion depends on the HealthCheck, and while it is Unhealthy,
// because then it holds promotions back and somebody must notice the end. The same is true
// of a problem that a measurement has found.
package activity

import (
	"fmt"
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/measure"
)

const (
	// slowest is the shortest time between two measurements of an Unhealthy HealthCheck
	// that no promotion depends on.
	slowest = time.Minute
	// spread is the longest time by which measurements are shifted, so that not all of a
	// fleet ask at once.
	spread = 10 * time.Second
	// again is when a Job that runs once is looked at again while it is running.
	again = 10 * time.Second
)

// Promotion is what is known of the promotion that depends on a HealthCheck.
type Promotion string

const (
	// None: no promotion that is running has reset the HealthCheck.
	None Promotion = "None"
	// Resetting: the reset for a promotion has begun, and is not complete. What is
	// measured now could be about the release before.
	Resetting Promotion = "Resetting"
	// Running: the HealthCheck bears the complete reset mark of a promotion, or of its
	// retry, that is running.
	Running Promotion = "Running"
)

// Input is everything that decides when a HealthCheck is measured.
type Input struct {
	// UID of the HealthCheck. Measurements are shifted by its hash.
	UID types.UID
	// Spec of the HealthCheck.
	Spec measure.Spec
	// Problem is why it cannot be measured as it is; empty if it can.
	Problem string
	// Found is true if the last measurement has found a problem, such as a Service that does
	// not exist. It may end without a change of the HealthCheck.
	Found bool
	// Status is the stored status.
	Status v1alpha1.HealthStatus
	// Promotion that depends on it.
	Promotion Promotion
	// Elsewhere is a Rollout that has reset the HealthCheck, and for which another instance
	// acts, as namespace/name; empty if there is none. Whether a promotion of it is running
	// is not known.
	Elsewhere string
	// UsesRelease is true if the result depends on the release of its Rollout.
	UsesRelease bool
	// Reset is when it was reset: lastChangeTime of the status that the reset wrote. Each
	// change of the verdict moves lastChangeTime, so the caller remembers the first one. If
	// a restart lost it, a later one will do: it only makes windows shorter. It is zero if
	// the HealthCheck never was reset.
	Reset time.Time
	// Last is when the newest measurement since the reset began; zero if there is none.
	Last time.Time
	// Ended is true if the measurements since the reset are enough for a verdict: a Job need
	// not run again.
	Ended bool
	// Known is when this process saw the HealthCheck first. After a restart, measurements
	// that are due are shifted from then on.
	Known time.Time
}

// Next is when a HealthCheck is measured next.
type Next struct {
	// At is when; zero means that only a change of the HealthCheck or of its Rollouts
	// leads to another measurement. It may be past.
	At time.Time
	// Pace is the time from one measurement to the next; zero if it is not measured.
	Pace time.Duration
	// Obstacle is why it is not measured, although a promotion may depend on it, and what to
	// do; empty if nothing is in the way.
	Obstacle string
	// Reason says why, in words that follow the name of the HealthCheck.
	Reason string
}

// Decide returns when the HealthCheck is measured next.
func Decide(in Input) Next {
	switch {
	case in.Problem != "":
		return never("is not measured, because it cannot be measured as it is")
	case in.Promotion == Resetting:
		return never("is not measured before its reset is complete")
	case in.Promotion == Running:
		return in.duringPromotion()
	case in.Elsewhere != "" && in.UsesRelease:
		return in.elsewhere()
	}
	return in.withoutPromotion()
}

// withoutPromotion returns when a HealthCheck is measured that no promotion depends on. A
// Job that runs once does so for a promotion, or for its retry.
func (in Input) withoutPromotion() Next {
	switch {
	case in.Spec.Once():
		return never("is not measured, because its Job runs once per promotion, and none is running")
	case in.Status == v1alpha1.HealthStatusUnhealthy:
		return in.every(max(in.Spec.Interval, slowest), "is measured until it is Healthy")
	case in.Found && in.Spec.Enforced:
		return in.every(max(in.Spec.Interval, slowest), "is measured until it can be")
	case in.Elsewhere != "":
		return in.elsewhere()
	}
	return never("is not measured, because no promotion depends on it")
}

func never(reason string) Next { return Next{Reason: reason} }

// elsewhere says that another instance acts for the Rollout. Only that one knows when a
// promotion runs, and of which release.
func (in Input) elsewhere() Next {
	obstacle := "another instance of the controller acts for Rollout " + in.Elsewhere + ": label both for the same instance"
	return Next{Obstacle: obstacle, Reason: "is not measured, because " + obstacle}
}

// duringPromotion returns when a HealthCheck is measured that a promotion depends on.
func (in Input) duringPromotion() Next {
	const reason = "is measured while a promotion depends on it"
	if in.Spec.Once() && in.Ended {
		return never("was measured for this promotion")
	}
	return in.first(in.every(in.pace(), reason))
}

// first delays the first measurement after a reset: before that, it could be about the
// release before.
func (in Input) first(next Next) Next {
	if !in.Last.IsZero() || in.Reset.IsZero() {
		return next
	}
	if first := in.shifted(in.Reset.Add(in.Spec.Delay)); first.After(next.At) {
		next.At = first
	}
	if in.Spec.Delay > 0 {
		next.Reason += fmt.Sprintf(", from %s after its reset on", measure.Short(in.Spec.Delay))
	}
	return next
}

// pace is the interval, or how often a Job that runs once is looked at until it has ended.
func (in Input) pace() time.Duration {
	if in.Spec.Once() {
		return again
	}
	return in.Spec.Interval
}

// every returns the next measurement at a pace: after the last one, but not before all
// others of a process that has just started.
func (in Input) every(pace time.Duration, reason string) Next {
	at := in.Last.Add(pace)
	if soonest := in.shifted(in.Known); in.Last.IsZero() || at.Before(soonest) {
		at = soonest
	}
	return Next{At: at, Pace: pace, Reason: fmt.Sprintf("%s, every %s", reason, measure.Short(pace))}
}

// After returns the next measurement, but later than one that was made. Thus no
// measurement has the time of another one.
func (n Next) After(last time.Time) Next {
	if !n.At.IsZero() && !n.At.After(last) {
		n.At = last.Add(time.Nanosecond)
	}
	return n
}

// shifted returns a time that is later by a part of the interval, which is the same each
// time for one HealthCheck.
func (in Input) shifted(at time.Time) time.Time {
	width := min(in.pace(), spread)
	if width <= 0 {
		return at
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(in.UID))
	return at.Add(time.Duration(hash.Sum64() % uint64(width)))
}
