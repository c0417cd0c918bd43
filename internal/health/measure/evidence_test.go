// SPDX-License-Identifier: Apache-2.0

package measure_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/measure"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// stored returns a HealthCheck of class http whose status shows so many measurements.
func stored(good, bad int32) *v1alpha1.HealthCheck {
	check := fixture.MakeHealthCheck("smoke").HTTP("https://shop.example.com").Healthy().Obj()
	check.Status.Good, check.Status.Bad = good, bad
	return check
}

func TestTooManyBadMeasurements(t *testing.T) {
	job := func(c *v1alpha1.HealthCheck) {
		c.Spec = v1alpha1.HealthCheckSpec{Class: new(v1alpha1.HealthCheckClassJob), Job: &v1alpha1.JobSpec{}}
		c.Spec.FailureThreshold = 2
	}
	for name, tt := range map[string]struct {
		good, bad int32
		change    func(*v1alpha1.HealthCheck)
		want      string
	}{
		"none":                                 {20, 0, nil, ""},
		"a fifth":                              {16, 4, nil, ""},
		"more than a fifth":                    {15, 4, nil, "4 of 19 measurements were bad, which is more than a fifth"},
		"half of them":                         {7, 7, nil, "7 of 14 measurements were bad, which is more than a fifth"},
		"fewer than fail it in a row":          {3, 2, nil, ""},
		"as many as fail it in a row":          {3, 3, nil, "3 of 6 measurements were bad, which is more than a fifth"},
		"nothing was measured":                 {0, 0, nil, ""},
		"a Job that succeeds the second time":  {1, 1, job, ""},
		"one that is not enforced":             {1, 9, func(c *v1alpha1.HealthCheck) { c.Spec.Enforce = new(bool) }, ""},
		"one that others write":                {1, 9, func(c *v1alpha1.HealthCheck) { c.Spec.HTTP = nil }, ""},
		"the threshold of a query with window": {15, 4, func(c *v1alpha1.HealthCheck) { c.Spec = windowed() }, ""},
		"more than one moment of a window":     {15, 5, func(c *v1alpha1.HealthCheck) { c.Spec = windowed() }, "5 of 20 measurements were bad, which is more than a fifth"},
	} {
		t.Run(name, func(t *testing.T) {
			g, check := NewWithT(t), stored(tt.good, tt.bad)
			if tt.change != nil {
				tt.change(check)
			}
			text, tooMany := measure.TooManyBad(check)
			g.Expect(text).To(Equal(tt.want))
			g.Expect(tooMany).To(Equal(tt.want != ""))
		})
	}
}

// windowed is the spec of the guide.
func windowed() v1alpha1.HealthCheckSpec {
	b := blocks(prometheus)
	b.Prometheus.Window = every(2 * time.Minute)
	return v1alpha1.HealthCheckSpec{Class: new(prometheus), Prometheus: b.Prometheus}
}

// Two thirds are bad, and the last one is good.
func TestBadMeasurementsAreCountedSinceTheReset(t *testing.T) {
	g, s := NewWithT(t), spec(nil)
	c := add(measure.NewCount(measure.AfterReset, measure.Stored{}, began), s, strings.Repeat("bbg", 13))
	g.Expect(c.Totals()).To(Equal(measure.Totals{Good: 13, Bad: 26}))
	g.Expect(c.Verdict(s, 0, at(39))).To(And(HaveField("Status", healthy), HaveField("Message", "39 (1 of 1 good; value <= 0.01), 26 of 39 bad in all")))

	before := measure.Stored{Status: healthy, Measurements: c.Measurements(), Totals: c.Totals()}
	g.Expect(add(measure.NewCount(measure.AfterRestart, before, began), s, "bn").Totals()).To(Equal(measure.Totals{Good: 13, Bad: 27}))
	g.Expect(measure.NewCount(measure.AfterReset, before, began).Totals()).To(BeZero())
	g.Expect(measure.NewCount(measure.AfterChange, before, began).Totals()).To(BeZero(), "they were judged by another condition")
}

func TestBadRowAloneIsNotCountedTwiceInTheMessage(t *testing.T) {
	s := spec(nil)
	for words, want := range map[string]string{
		"ggbb": "3, 4 (2 of 3 bad; value <= 0.01)",
		"bgb":  "3 (1 of 3 bad; value <= 0.01), 2 of 3 bad in all",
		"bgn":  "2 (1 of 1 good; value <= 0.01), 1 of 2 bad in all",
		"bge":  "2 (1 of 1 good; value <= 0.01), 1 of 2 bad in all",
	} {
		c := add(measure.NewCount(measure.AfterReset, measure.Stored{}, began), s, words)
		NewWithT(t).Expect(c.Verdict(s, 0, at(4)).Message).To(Equal(want), words)
	}
}

func TestLastValue(t *testing.T) {
	g := NewWithT(t)
	check := stored(28, 2)
	g.Expect(measure.LastValue(check)).To(BeEmpty(), "nothing was measured")
	check.Status.Measurements = []v1alpha1.Measurement{{Value: "0.0021"}, {Value: "0.5"}}
	g.Expect(measure.LastValue(check)).To(Equal("0.0021 (2 of 30 bad)"))
	check.Status.Bad = 0
	g.Expect(measure.LastValue(check)).To(Equal("0.0021"))
}

func TestStaleAt(t *testing.T) {
	const good, bad, none, failed = v1alpha1.MeasurementGood, v1alpha1.MeasurementBad, v1alpha1.MeasurementNoData, v1alpha1.MeasurementError
	for name, tt := range map[string]struct {
		results []v1alpha1.MeasurementResult // the newest first, at 10, 9, 8 …
		change  func(*v1alpha1.HealthCheckSpec)
		want    time.Time
	}{
		"nothing was measured":      {nil, nil, time.Time{}},
		"a good one":                {[]v1alpha1.MeasurementResult{good, good}, nil, at(10).Add(150 * time.Second)},
		"a bad one":                 {[]v1alpha1.MeasurementResult{bad}, nil, at(10).Add(150 * time.Second)},
		"errors after a good one":   {[]v1alpha1.MeasurementResult{failed, none, good}, nil, at(8).Add(150 * time.Second)},
		"nothing but errors":        {[]v1alpha1.MeasurementResult{failed, failed}, nil, time.Time{}},
		"no data that is good":      {[]v1alpha1.MeasurementResult{none, good}, func(s *v1alpha1.HealthCheckSpec) { s.Prometheus.NoData = v1alpha1.NoDataHealthy }, at(10).Add(150 * time.Second)},
		"an interval of 5s":         {[]v1alpha1.MeasurementResult{good}, func(s *v1alpha1.HealthCheckSpec) { s.Interval = every(5 * time.Second) }, at(10).Add(75 * time.Second)},
		"a Job that has ended once": {[]v1alpha1.MeasurementResult{good}, func(s *v1alpha1.HealthCheckSpec) { s.Class, s.Job = new(job), &v1alpha1.JobSpec{} }, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			check := fixture.MakeHealthCheck("errors").Prometheus("errors", "value < 1.0").Obj()
			for i, result := range tt.results {
				check.Status.Measurements = append(check.Status.Measurements, v1alpha1.Measurement{At: metav1.Time{Time: at(10 - i)}, Result: result})
			}
			if tt.change != nil {
				tt.change(&check.Spec)
			}
			NewWithT(t).Expect(measure.StaleAt(check)).To(Equal(tt.want))
		})
	}
}

// A clock that was ahead, or a restored backup, must not delay the next measurement until then.
func TestStoredMeasurementThatHasNotComeCountsAsNow(t *testing.T) {
	g := NewWithT(t)
	tomorrow := began.Add(24 * time.Hour)
	was := measure.Stored{Status: healthy, Measurements: []v1alpha1.Measurement{{At: metav1.NewTime(tomorrow), Result: v1alpha1.MeasurementGood}}}
	c := measure.NewCount(measure.AfterRestart, was, began)
	g.Expect(c.LastMeasured()).To(Equal(began))
	g.Expect(add(c, spec(nil), "g").LastMeasured()).To(Equal(at(1)))
}
