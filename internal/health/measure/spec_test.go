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

const (
	prometheus = v1alpha1.HealthCheckClassPrometheus
	http       = v1alpha1.HealthCheckClassHTTP
	job        = v1alpha1.HealthCheckClassJob
	object     = v1alpha1.HealthCheckClassObject
)

func every(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// blocks returns the blocks of a spec of a class.
func blocks(class string) measure.Blocks {
	switch class {
	case prometheus:
		return measure.Blocks{Prometheus: &v1alpha1.PrometheusSpec{Condition: "value <= 0.01"}}
	case http:
		return measure.Blocks{HTTP: &v1alpha1.HTTPSpec{}}
	case job:
		return measure.Blocks{Job: &v1alpha1.JobSpec{}}
	}
	return measure.Blocks{Object: &v1alpha1.ObjectSpec{}}
}

func TestSpecDefaults(t *testing.T) {
	common := measure.Spec{
		Enforced: true, Interval: 30 * time.Second, Timeout: 10 * time.Second, FailureThreshold: 3, SuccessThreshold: 1,
		NoData: v1alpha1.NoDataPending,
	}
	for class, change := range map[string]func(*measure.Spec){
		prometheus: func(s *measure.Spec) { s.Delay, s.Condition = time.Minute, "value <= 0.01" },
		http:       func(*measure.Spec) {},
		object:     func(s *measure.Spec) { s.Delay = 30 * time.Second },
		job:        func(s *measure.Spec) { s.FailureThreshold, s.Interval = 1, 0 },
	} {
		want := common
		want.Class = class
		change(&want)
		NewWithT(t).Expect(measure.NewSpec(class, v1alpha1.MeasuringSpec{}, blocks(class))).To(Equal(want))
	}
}

func TestSpecValues(t *testing.T) {
	g := NewWithT(t)
	enforce := false
	given := v1alpha1.MeasuringSpec{
		Enforce: &enforce, Interval: every(time.Minute), Timeout: every(time.Second), Delay: every(0), FailureThreshold: 5, SuccessThreshold: 2,
	}
	want := measure.Spec{Class: http, Interval: time.Minute, Timeout: time.Second, FailureThreshold: 5, SuccessThreshold: 2, NoData: v1alpha1.NoDataPending}
	g.Expect(measure.NewSpec(http, given, blocks(http))).To(Equal(want))
	want.Class, want.Interval, want.SuccessThreshold = job, 0, 1
	g.Expect(measure.NewSpec(job, given, blocks(job))).To(Equal(want), "a Job runs once, also with an older CRD")
}

func TestSpecDelayOfPrometheus(t *testing.T) {
	for name, tt := range map[string]struct {
		window, delay *metav1.Duration
		want          time.Duration
	}{
		"no window":           {nil, nil, time.Minute},
		"a short window":      {every(30 * time.Second), nil, time.Minute},
		"a long window":       {every(5 * time.Minute), nil, 5 * time.Minute},
		"a delay":             {every(5 * time.Minute), every(2 * time.Second), 2 * time.Second},
		"a delay of nothing":  {every(5 * time.Minute), every(0), 0},
		"a negative duration": {every(-time.Hour), every(-time.Second), time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			b := blocks(prometheus)
			b.Prometheus.Window = tt.window
			NewWithT(t).Expect(measure.NewSpec(prometheus, v1alpha1.MeasuringSpec{Delay: tt.delay}, b).Delay).To(Equal(tt.want))
		})
	}
}

// A single error is in a window for as long as that. Bad measurements in a row that fail a
// release must be of windows of which two share no sample.
func TestFailureThresholdFollowsFromTheWindow(t *testing.T) {
	for name, tt := range map[string]struct {
		window, interval *metav1.Duration
		want             int
	}{
		"no window":                        {nil, nil, 3},
		"a window of an interval":          {every(30 * time.Second), nil, 3},
		"the window of the guide":          {every(2 * time.Minute), every(30 * time.Second), 5},
		"a window that no interval fits":   {every(100 * time.Second), every(30 * time.Second), 5},
		"a window that is long":            {every(time.Hour), every(time.Minute), 61},
		"a window, by the usual interval":  {every(5 * time.Minute), nil, 11},
		"a window, and a longer interval":  {every(time.Minute), every(10 * time.Minute), 3},
		"a window that is not an interval": {every(-time.Minute), nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			g, b := NewWithT(t), blocks(prometheus)
			b.Prometheus.Window = tt.window
			given := v1alpha1.MeasuringSpec{Interval: tt.interval}
			s := measure.NewSpec(prometheus, given, b)
			g.Expect(s.FailureThreshold).To(Equal(tt.want))
			g.Expect(s.Overlaps()).To(BeEmpty())
			given.FailureThreshold = 2
			s = measure.NewSpec(prometheus, given, b)
			g.Expect(s.FailureThreshold).To(Equal(2), "what is given counts")
			g.Expect(s.Overlaps() == "").To(Equal(tt.window == nil || tt.window.Duration <= s.Interval))
		})
	}
}

func TestThresholdThatCountsTheSameErrorsAgainIsSaid(t *testing.T) {
	b := blocks(prometheus)
	b.Prometheus.Window = every(2 * time.Minute)
	s := measure.NewSpec(prometheus, v1alpha1.MeasuringSpec{FailureThreshold: 4}, b)
	NewWithT(t).Expect(s.Overlaps()).To(Equal("failureThreshold is 4, and the window is 2m: measurements every 30s see the same errors up to 4 times, so one moment of errors fails a release"))
}

func TestProblem(t *testing.T) {
	for name, tt := range map[string]struct {
		class  string
		spec   v1alpha1.MeasuringSpec
		change func(*measure.Blocks)
		want   string
	}{
		"prometheus":      {class: prometheus},
		"http":            {class: http},
		"job":             {class: job},
		"object":          {class: object},
		"a block without": {http, v1alpha1.MeasuringSpec{}, func(b *measure.Blocks) { b.Job = &v1alpha1.JobSpec{} }, `spec.job needs the class job, and spec.class is "http": remove one of them`},
		"a class without": {object, v1alpha1.MeasuringSpec{}, func(b *measure.Blocks) { b.Object = nil }, "spec.object is missing: the class object needs it"},
	} {
		t.Run(name, func(t *testing.T) {
			b := blocks(tt.class)
			if tt.change != nil {
				tt.change(&b)
			}
			got := measure.ProblemOf(measure.NewSpec(tt.class, tt.spec, b), b)
			NewWithT(t).Expect(got.Text).To(Equal(tt.want))
			NewWithT(t).Expect(got.Text).To(HavePrefix(got.Field))
			NewWithT(t).Expect(got.Field == "").To(Equal(tt.want == ""))
		})
	}
}

func TestTooSlow(t *testing.T) {
	spec := measure.Spec{Delay: 2 * time.Minute, Interval: 30 * time.Second, SuccessThreshold: 3}
	for deployTimeout, want := range map[string]string{
		"1m": "it is Healthy 3m after a release was applied at the earliest, and deployTimeout is 1m: use a longer deployTimeout, or a shorter delay or interval",
		"3m": "it is Healthy 3m after a release was applied at the earliest, and deployTimeout is 3m: use a longer deployTimeout, or a shorter delay or interval",
		"4m": "",
		"0s": "",
	} {
		g := NewWithT(t)
		d, err := time.ParseDuration(deployTimeout)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(measure.TooSlow(spec, d)).To(Equal(want))
	}
}

func TestTooSeldom(t *testing.T) {
	seldom := measure.Spec{Class: http, Interval: time.Minute}
	g := NewWithT(t)
	g.Expect(measure.TooSeldom(seldom, 20*time.Second)).To(Equal("it is measured every 1m, and bakeTime is 20s: use a longer bakeTime, or a shorter interval"))
	g.Expect(measure.TooSeldom(seldom, time.Minute)).To(BeEmpty())
	g.Expect(measure.TooSeldom(seldom, 0)).To(BeEmpty(), "there is no bake")
	g.Expect(measure.TooSeldom(measure.Spec{Class: job}, time.Second)).To(BeEmpty())
}

func TestShort(t *testing.T) {
	for _, text := range []string{"0s", "30s", "2m", "1h", "1h30m", "1m30s", "1h0m5s", "20s", "10m", "1.5s"} {
		g := NewWithT(t)
		d, err := time.ParseDuration(text)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(measure.Short(d)).To(Equal(text))
	}
}
