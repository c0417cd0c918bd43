// SPDX-License-Identifier: Apache-2.0

package measure_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/measure"
)

func TestWriteAt(t *testing.T) {
	now, minute := at(10), time.Minute
	for name, tt := range map[string]struct {
		change    func(*measure.Written)
		lastWrite time.Time
		want      time.Time
	}{
		"nothing":                          {func(*measure.Written) {}, now, time.Time{}},
		"nothing, and nothing was written": {func(*measure.Written) {}, time.Time{}, time.Time{}},
		"the verdict":                      {func(w *measure.Written) { w.Status = unhealthy }, now, now},
		"the time of the error":            {func(w *measure.Written) { w.ErrorTime = &metav1.Time{Time: now} }, now, now},
		"a problem":                        {func(w *measure.Written) { w.Measuring.Problem = "x" }, now, now},
		"the query":                        {func(w *measure.Written) { w.Measuring.Query = "down[30s]" }, now, now},
		"the release":                      {func(w *measure.Written) { w.Measuring.Release = &v1alpha1.MeasuredRelease{Tag: "2"} }, now, now},
		"the generation":                   {func(w *measure.Written) { w.Measuring.ObservedGeneration++ }, now, now},
		"a duration in the query":          {func(w *measure.Written) { w.Measuring.Query = "up[447s]" }, now, now.Add(minute)},
		"the message":                      {func(w *measure.Written) { w.Message = "x" }, now.Add(-10 * time.Second), now.Add(50 * time.Second)},
		"that it is not measured":          {func(w *measure.Written) { w.Measuring.Reason = v1alpha1.MeasuringOtherInstance }, now, now},
		"the measurements":                 {measuredAgain, now.Add(-30 * time.Second), now.Add(30 * time.Second)},
		"the measurements, a minute later": {measuredAgain, now.Add(-minute), now},
		"the measurements, long after":     {measuredAgain, now.Add(-time.Hour), now},
		"the measurements, for the first":  {measuredAgain, time.Time{}, now},
		"a clock that was set back":        {measuredAgain, now.Add(time.Hour), now},
	} {
		t.Run(name, func(t *testing.T) {
			before := measure.Written{Status: healthy, Message: "fine", Measuring: v1alpha1.MeasuringStatus{
				Query: "up[417s]", ObservedGeneration: 1, Release: &v1alpha1.MeasuredRelease{Tag: "1"},
			}}
			after := before
			tt.change(&after)
			NewWithT(t).Expect(measure.WriteAt(before, after, tt.lastWrite, now)).To(Equal(tt.want))
		})
	}
}

func measuredAgain(w *measure.Written) {
	w.Measuring.Measurements = []v1alpha1.Measurement{{At: metav1.Time{Time: at(10)}, Result: v1alpha1.MeasurementGood}}
}

// TestWritesOfABake counts the writes of a bake of ten minutes with a measurement every 10 s
// and two changes of the verdict.
func TestWritesOfABake(t *testing.T) {
	g := NewWithT(t)
	s := spec(func(s *measure.Spec) { s.Interval = 10 * time.Second })
	c := measure.NewCount(measure.AfterReset, measure.Stored{}, began)
	stored, lastWrite, writes := measure.Written{Status: pending}, began, 0
	for i := 1; i <= 60; i++ {
		now, result := began.Add(time.Duration(i)*10*time.Second), v1alpha1.MeasurementGood
		if i == 30 {
			result = v1alpha1.MeasurementBad
		}
		c = c.Add(measure.Measurement{At: now, Value: measure.Number(float64(i)), Result: result}, s)
		v := c.Verdict(s, s.Interval, now)
		next := measure.Written{Status: v.Status, Message: v.Message, Measuring: v1alpha1.MeasuringStatus{Measurements: c.Measurements()}}
		if at := measure.WriteAt(stored, next, lastWrite, now); !at.IsZero() && !at.After(now) {
			stored, lastWrite, writes = next, now, writes+1
		}
	}
	g.Expect(writes).To(BeNumerically("<=", 12))
	g.Expect(stored.Measuring.Measurements).To(HaveLen(10))
}
