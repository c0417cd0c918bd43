// SPDX-License-Identifier: Apache-2.0

// Package measure decides what the measurements of a HealthCheck mean. It is pure:
// measurements and the time are arguments.
//
//	spec.go         how a HealthCheck is measured, with the defaults
//	problem.go      what cannot work in a spec
//	measurement.go  one measurement, and how it is shown
//	count.go        the good and bad measurements in a row
//	verdict.go      the status that follows from them
//	evidence.go     what all measurements of a bake add up to
//	words.go        the message of that status
//	write.go        when the status must be written
package measure

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

const (
	defaultInterval       = 30 * time.Second
	defaultTimeout        = 10 * time.Second
	minimumPrometheusWait = time.Minute
	defaultThreshold      = 3
	staleIntervals        = 3
)

// Spec defines how a HealthCheck is measured. All defaults are filled in.
type Spec struct {
	// Class is prometheus, http, job or object.
	Class string
	// Enforced is false if a bad result does not count.
	Enforced bool
	// Interval is the time from one measurement to the next. It is zero for a Job, which
	// runs once per promotion.
	Interval time.Duration
	// Timeout is how long one measurement may take.
	Timeout time.Duration
	// Delay is the time from the reset to the first measurement.
	Delay time.Duration
	// Window is spec.prometheus.window: how long an error is seen. It is zero for other
	// classes.
	Window time.Duration
	// FailureThreshold is how many bad measurements in a row mean Unhealthy.
	FailureThreshold int
	// SuccessThreshold is how many good measurements in a row mean Healthy.
	SuccessThreshold int
	// NoData is what a measurement without a number means.
	NoData v1alpha1.NoDataPolicy
	// Condition is what a good value fulfils, for messages; it may be empty.
	Condition string
}

// SpecOf returns how a HealthCheck is measured, which must be of a class that is.
func SpecOf(check *v1alpha1.HealthCheck) Spec {
	return NewSpec(*check.Spec.Class, check.Spec.MeasuringSpec, BlocksOf(check.Spec))
}

// NewSpec returns a spec with its defaults. A negative or missing duration counts as not
// set.
func NewSpec(class string, m v1alpha1.MeasuringSpec, blocks Blocks) Spec {
	s := Spec{
		Class:            class,
		Enforced:         m.Enforce == nil || *m.Enforce,
		Interval:         duration(m.Interval, defaultInterval),
		Timeout:          duration(m.Timeout, defaultTimeout),
		SuccessThreshold: threshold(m.SuccessThreshold, 1),
		NoData:           v1alpha1.NoDataPending,
	}
	if class == v1alpha1.HealthCheckClassJob {
		s.Interval, s.SuccessThreshold = 0, 1
	}
	s = s.ofBlock(blocks)
	s.Delay = duration(m.Delay, s.defaultDelay())
	s.FailureThreshold = threshold(m.FailureThreshold, s.defaultFailures())
	return s
}

// ofBlock adds what is set in the block of the class.
func (s Spec) ofBlock(blocks Blocks) Spec {
	if p := blocks.Prometheus; p != nil {
		s.Condition, s.Window = p.Condition, duration(p.Window, 0)
		if p.NoData != "" {
			s.NoData = p.NoData
		}
	}
	if blocks.HTTP != nil {
		s.Condition = blocks.HTTP.Condition
	}
	return s
}

// Once reports whether there is one measurement per promotion.
func (s Spec) Once() bool { return s.Interval == 0 }

// defaultDelay returns the time until a query cannot see the release before, which is its
// window. What an operator makes of a release takes a moment, too.
func (s Spec) defaultDelay() time.Duration {
	switch s.Class {
	case v1alpha1.HealthCheckClassPrometheus:
		return max(s.Window, minimumPrometheusWait)
	case v1alpha1.HealthCheckClassObject:
		return s.Interval
	}
	return 0
}

// defaultFailures returns how many bad measurements in a row fail a release. For a query with
// a window, two of them are of windows that share no sample.
func (s Spec) defaultFailures() int {
	if s.Class == v1alpha1.HealthCheckClassJob {
		return 1
	}
	return max(defaultThreshold, s.seen()+1)
}

// seen returns how many measurements see the same error.
func (s Spec) seen() int {
	if s.Interval <= 0 {
		return 1
	}
	return int((s.Window + s.Interval - 1) / s.Interval)
}

// Overlaps says what is wrong if a single moment of errors fails a release, because all
// measurements that this takes see it; empty if they do not.
func (s Spec) Overlaps() string {
	if s.Window <= s.Interval || s.FailureThreshold > s.seen() {
		return ""
	}
	return fmt.Sprintf("failureThreshold is %d, and the window is %s: measurements every %s see the same errors up to %d times, "+
		"so one moment of errors fails a release", s.FailureThreshold, Short(s.Window), Short(s.Interval), s.seen())
}

func threshold(given int32, fallback int) int {
	if given < 1 {
		return fallback
	}
	return int(given)
}

// duration returns a duration that is given, or another one. A duration of 0s counts as
// given.
func duration(given *metav1.Duration, fallback time.Duration) time.Duration {
	if given == nil || given.Duration < 0 {
		return fallback
	}
	return given.Duration
}
