// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
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
	// Field that is wrong, for example spec.http.
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
	if !blocks.Of(s.Class) {
		return problem("spec."+s.Class, " is missing: the class %s needs it", s.Class)
	}
	return Problem{}
}

func problem(field, format string, args ...any) Problem {
	return Problem{Field: field, Text: field + fmt.Sprintf(format, args...)}
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

// TooSeldom returns why a bake may end without any measurement; empty if it cannot. A bake
// time of zero or less is none, and a Job runs before the bake.
func TooSeldom(s Spec, bakeTime time.Duration) string {
	if bakeTime <= 0 || bakeTime >= s.Interval {
		return ""
	}
	return fmt.Sprintf("it is measured every %s, and bakeTime is %s: use a longer bakeTime, or a shorter interval", Short(s.Interval), Short(bakeTime))
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
