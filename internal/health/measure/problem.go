// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/limit"
)

// Blocks are the blocks of the classes in a spec; nil for those that are not there.
type Blocks struct {
	// Prometheus is spec.prometheus.
	Prometheus *v1alpha1.PrometheusSpec
	// HTTP is spec.http.
	HTTP *v1alpha1.HTTPSpec
	// Job is spec.job.
	Job *v1alpha1.JobSpec
	// Object is spec.object.
	Object *v1alpha1.ObjectSpec
}

// BlocksOf returns the blocks of a spec.
func BlocksOf(spec v1alpha1.HealthCheckSpec) Blocks {
	return Blocks{Prometheus: spec.Prometheus, HTTP: spec.HTTP, Job: spec.Job, Object: spec.Object}
}

// has reports which blocks there are, by their class.
func (b Blocks) has() map[string]bool {
	return map[string]bool{
		v1alpha1.HealthCheckClassPrometheus: b.Prometheus != nil,
		v1alpha1.HealthCheckClassHTTP:       b.HTTP != nil,
		v1alpha1.HealthCheckClassJob:        b.Job != nil,
		v1alpha1.HealthCheckClassObject:     b.Object != nil,
	}
}

// Of reports whether the class is measured, and its block is there. A class without its
// block belongs to another controller.
func (b Blocks) Of(class string) bool { return b.has()[class] }

// Problem is why a HealthCheck cannot be measured as it is. In its zero value, it can.
type Problem struct {
	// Field that is wrong, for example spec.staleAfter.
	Field string
	// Text begins with the name of the field.
	Text string
}

// ProblemOf returns why a HealthCheck cannot be measured as it is, if it cannot. It does
// not look into queries, conditions and paths: the packages variables and condition do.
func ProblemOf(s Spec, blocks Blocks) Problem {
	for class, there := range blocks.has() {
		if there && class != s.Class {
			return problem("spec."+class, " needs the class %s, and spec.class is %q: remove one of them", class, s.Class)
		}
	}
	switch {
	case !blocks.Of(s.Class):
		return problem("spec."+s.Class, " is missing: the class %s needs it", s.Class)
	case s.Once() && s.SuccessThreshold > 1:
		return onceProblem("spec.successThreshold", s.SuccessThreshold)
	case s.Once() && s.FailureThreshold > 1:
		return onceProblem("spec.failureThreshold", s.FailureThreshold)
	case s.StaleAfter < s.Interval:
		return problem("spec.staleAfter", " is %s, and must be at least the interval, which is %s", Short(s.StaleAfter), Short(s.Interval))
	}
	return rangeProblem(blocks.Prometheus)
}

func problem(field, format string, args ...any) Problem {
	return Problem{Field: field, Text: field + fmt.Sprintf(format, args...)}
}

func onceProblem(field string, n int) Problem {
	return problem(field, " is %d, but without spec.interval there is one Job per promotion: set spec.interval", n)
}

func rangeProblem(p *v1alpha1.PrometheusSpec) Problem {
	if p == nil || p.Range == nil {
		return Problem{}
	}
	over, step := p.Range.Over.Duration, p.Range.Step.Duration
	switch {
	case over < time.Second:
		return problem("spec.prometheus.range.over", " must be at least 1s")
	case step < time.Second:
		return problem("spec.prometheus.range.step", " must be at least 1s")
	}
	if points := over/step + 1; points > limit.Points {
		return problem("spec.prometheus.range", " has %d points, and may have %d: use a longer step", points, limit.Points)
	}
	return Problem{}
}

// TooSlow returns why no release can be proven in time; empty if it can. A bake starts
// when all HealthChecks are Healthy, and fails if that takes longer than deployTimeout.
// A deployTimeout of zero or less is none.
func TooSlow(s Spec, deployTimeout time.Duration) string {
	soonest := s.Delay + time.Duration(s.SuccessThreshold-1)*s.Interval
	if deployTimeout <= 0 || deployTimeout > soonest {
		return ""
	}
	return fmt.Sprintf("it is Healthy %s after a release was applied at the earliest, "+
		"and deployTimeout is %s: use a longer deployTimeout, or a shorter delay or interval", Short(soonest), Short(deployTimeout))
}

// Short returns a duration without parts that are zero, for example 2m instead of 2m0s.
func Short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
