// SPDX-License-Identifier: Apache-2.0

package activity_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/activity"
	"github.com/fluxrollouts/rollout-controller/internal/health/measure"
)

const (
	healthy   = v1alpha1.HealthStatusHealthy
	unhealthy = v1alpha1.HealthStatusUnhealthy
	pending   = v1alpha1.HealthStatusPending
)

var (
	started = time.Date(2026, 7, 6, 9, 0, 0, 0, time.UTC) // of the process
	reset   = started.Add(3 * time.Hour)
)

// shift is that of the UID "a", less than 10 s.
var shift = activity.Decide(activity.Input{UID: "a", Spec: spec(nil), Promotion: activity.Running}).At.Sub(time.Time{})

func spec(change func(*measure.Spec)) measure.Spec {
	s := measure.NewSpec(v1alpha1.HealthCheckClassPrometheus, v1alpha1.MeasuringSpec{}, measure.Blocks{})
	if change != nil {
		change(&s)
	}
	return s
}

func once(s *measure.Spec) { s.Interval, s.Delay = 0, 0 }

func TestDecide(t *testing.T) {
	const (
		every30s = "is measured while a promotion depends on it, every 30s"
		rest     = "is not measured, because no promotion depends on it"

		elsewhere = "another instance of the controller acts for Rollout shop/cart: label both for the same instance"
	)
	last := reset.Add(10 * time.Minute)
	for name, tt := range map[string]struct {
		spec func(*measure.Spec)
		in   activity.Input
		want activity.Next
	}{
		"at rest":             {nil, activity.Input{Status: healthy, Last: last}, activity.Next{Reason: rest}},
		"at rest and Pending": {nil, activity.Input{Status: pending}, activity.Next{Reason: rest}},
		"Unhealthy at rest": {nil, activity.Input{Status: unhealthy, Last: last}, activity.Next{
			At: last.Add(time.Minute), Pace: time.Minute, Reason: "is measured until it is Healthy, every 1m",
		}},
		"Unhealthy at rest, with a long interval": {
			func(s *measure.Spec) { s.Interval = 5 * time.Minute },
			activity.Input{Status: unhealthy, Last: last},
			activity.Next{At: last.Add(5 * time.Minute), Pace: 5 * time.Minute, Reason: "is measured until it is Healthy, every 5m"},
		},
		"at rest, with a problem that a measurement has found": {nil, activity.Input{Status: pending, Last: last, Found: true}, activity.Next{
			At: last.Add(time.Minute), Pace: time.Minute, Reason: "is measured until it can be, every 1m",
		}},
		"after the reset": {nil, activity.Input{Promotion: activity.Running, Reset: reset, Status: pending}, activity.Next{
			At: reset.Add(time.Minute + shift), Pace: 30 * time.Second, Reason: every30s + ", from 1m after its reset on",
		}},
		"without delay": {
			func(s *measure.Spec) { s.Delay = 0 },
			activity.Input{Promotion: activity.Running, Reset: reset, Status: pending},
			activity.Next{At: reset.Add(shift), Pace: 30 * time.Second, Reason: every30s},
		},
		"after a measurement": {nil, activity.Input{Promotion: activity.Running, Reset: reset, Last: last, Status: healthy}, activity.Next{
			At: last.Add(30 * time.Second), Pace: 30 * time.Second, Reason: every30s,
		}},
		"after a restart": {nil, activity.Input{Promotion: activity.Running, Reset: started.Add(-time.Hour), Last: started.Add(-50 * time.Minute)}, activity.Next{
			At: started.Add(shift), Pace: 30 * time.Second, Reason: every30s,
		}},
		"after a restart before the first one": {nil, activity.Input{Promotion: activity.Running, Reset: started.Add(-time.Hour)}, activity.Next{
			At: started.Add(shift), Pace: 30 * time.Second, Reason: every30s + ", from 1m after its reset on",
		}},
		"during the reset": {nil, activity.Input{Promotion: activity.Resetting, Status: unhealthy}, activity.Next{Reason: "is not measured before its reset is complete"}},
		"a problem":        {nil, activity.Input{Promotion: activity.Running, Problem: "x"}, activity.Next{Reason: "is not measured, because it cannot be measured as it is"}},
		"a Rollout of another instance": {nil, activity.Input{Elsewhere: "shop/cart", Status: pending, Reset: reset}, activity.Next{
			Obstacle: elsewhere, Reason: "is not measured, because " + elsewhere,
		}},
		"another instance, and Unhealthy": {nil, activity.Input{Elsewhere: "shop/cart", Status: unhealthy, Last: last}, activity.Next{
			At: last.Add(time.Minute), Pace: time.Minute, Reason: "is measured until it is Healthy, every 1m",
		}},
		"another instance, of whose release the result depends": {nil, activity.Input{Elsewhere: "shop/cart", UsesRelease: true, Status: unhealthy, Last: last}, activity.Next{
			Obstacle: elsewhere, Reason: "is not measured, because " + elsewhere,
		}},
		"another instance, and a promotion of this one": {nil, activity.Input{Promotion: activity.Running, Elsewhere: "shop/cart", Reset: reset, Last: last, Status: healthy}, activity.Next{
			At: last.Add(30 * time.Second), Pace: 30 * time.Second, Reason: every30s,
		}},
		"a Job that runs once":       {once, activity.Input{Promotion: activity.Running, Reset: reset}, activity.Next{At: reset.Add(shift), Pace: 10 * time.Second, Reason: "is measured while a promotion depends on it, every 10s"}},
		"a Job that is running":      {once, activity.Input{Promotion: activity.Running, Reset: reset, Last: last}, activity.Next{At: last.Add(10 * time.Second), Pace: 10 * time.Second, Reason: "is measured while a promotion depends on it, every 10s"}},
		"a Job that has ended":       {once, activity.Input{Promotion: activity.Running, Reset: reset, Last: last, Ended: true, Status: unhealthy}, activity.Next{Reason: "was measured for this promotion"}},
		"a Job that failed, at rest": {once, activity.Input{Last: last, Ended: true, Status: unhealthy}, activity.Next{Reason: "is not measured, because its Job runs once per promotion, and none is running"}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.in.UID, tt.in.Known, tt.in.Spec = "a", started, spec(tt.spec)
			NewWithT(t).Expect(activity.Decide(tt.in)).To(Equal(tt.want))
		})
	}
}

func TestDecideShiftsAFleet(t *testing.T) {
	g := NewWithT(t)
	seconds := map[time.Duration]int{}
	for i := range 1000 {
		in := activity.Input{UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)), Spec: spec(nil), Promotion: activity.Running, Reset: reset}
		shift := activity.Decide(in).At.Sub(reset.Add(time.Minute))
		g.Expect(shift).To(And(BeNumerically(">=", 0), BeNumerically("<", 10*time.Second)))
		g.Expect(activity.Decide(in).At.Sub(reset.Add(time.Minute))).To(Equal(shift))
		seconds[shift.Truncate(time.Second)]++
	}
	g.Expect(seconds).To(HaveLen(10))
	for _, n := range seconds {
		g.Expect(n).To(BeNumerically("<", 200))
	}
}

// TestDecideCountsMeasurements measures whenever it is due, for a bake of ten minutes and
// the day after it.
func TestDecideCountsMeasurements(t *testing.T) {
	for status, want := range map[v1alpha1.HealthStatus]int{healthy: 0, pending: 0, unhealthy: 24 * 60} {
		g := NewWithT(t)
		in := activity.Input{UID: "a", Known: started, Spec: spec(nil), Promotion: activity.Running, Reset: reset}
		end := reset.Add(10 * time.Minute)
		g.Expect(measureUntil(&in, end)).To(BeNumerically("~", 18, 1))
		in.Promotion, in.Status = activity.None, status
		g.Expect(measureUntil(&in, end.Add(24*time.Hour))).To(BeNumerically("~", want, 1))
	}
}

// measureUntil returns how many measurements are due before a time.
func measureUntil(in *activity.Input, end time.Time) (n int) {
	for next := activity.Decide(*in); !next.At.IsZero() && next.At.Before(end); next = activity.Decide(*in) {
		in.Last = next.At
		n++
	}
	return n
}

func TestNextIsLaterThanTheLast(t *testing.T) {
	g := NewWithT(t)
	g.Expect(activity.Next{At: started}.After(reset).At).To(Equal(reset.Add(time.Nanosecond)))
	g.Expect(activity.Next{At: reset}.After(reset).At).To(Equal(reset.Add(time.Nanosecond)))
	g.Expect(activity.Next{At: reset}.After(started).At).To(Equal(reset))
	g.Expect(activity.Next{}.After(reset).At).To(BeZero(), "nothing is planned")
}
