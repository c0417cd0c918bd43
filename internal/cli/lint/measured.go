// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/condition"
	"github.com/fluxrollouts/rollout-controller/internal/health/measure"
	"github.com/fluxrollouts/rollout-controller/internal/health/variables"
)

// checkMeasurable finds HealthChecks that the controller would measure, and cannot. It
// does not know what the operator allows, nor which Services and Secrets there are.
func checkMeasurable(r *report) {
	for o, check := range r.measured() {
		if problem := problemOf(check); problem.Text != "" {
			r.find(at{o, strings.Split(problem.Field, ".")},
				fmt.Sprintf("%s cannot be measured, and holds automatic promotions: %s", o, problem.Text), "correct the field")
		}
	}
}

// checkOverlap finds HealthChecks that a single moment of errors makes Unhealthy.
func checkOverlap(r *report) {
	for o, check := range r.measured() {
		if problem := measure.SpecOf(check).Overlaps(); problem != "" {
			r.find(at{o, []string{"spec", "failureThreshold"}}, fmt.Sprintf("%s: %s", o, problem), "leave the field out: its default follows from window and interval")
		}
	}
}

// measured returns the HealthChecks that are measured, as far as their specs are known.
func (r *report) measured() iter.Seq2[*object, *v1alpha1.HealthCheck] {
	return func(yield func(*object, *v1alpha1.HealthCheck) bool) {
		for _, o := range r.byKind[healthCheckKind] {
			check := &v1alpha1.HealthCheck{}
			switch {
			case o.isUnknown("spec"):
				r.skip(at{o, []string{"spec"}}, "it has variables whose values are not known")
			case len(o.problems) > 0 || o.decode(o.fields("spec"), &check.Spec) != nil || !check.IsMeasured():
			case !yield(o, check):
				return
			}
		}
	}
}

// problemOf returns why a HealthCheck cannot be measured as it is, if it cannot.
func problemOf(check *v1alpha1.HealthCheck) measure.Problem {
	if problem := measure.ProblemOf(measure.SpecOf(check), measure.BlocksOf(check.Spec)); problem.Text != "" {
		return problem
	}
	for _, compiled := range compile(&check.Spec) {
		if compiled.err != nil {
			return measure.Problem{Field: compiled.field, Text: compiled.err.Error()}
		}
	}
	return measure.Problem{}
}

// compiled is a field, and why it cannot be compiled; nil if it can.
type compiled struct {
	field string
	err   error
}

func compile(spec *v1alpha1.HealthCheckSpec) []compiled {
	switch {
	case spec.Prometheus != nil:
		return compilePrometheus(spec.Prometheus)
	case spec.HTTP != nil:
		return compileHTTP(spec.HTTP)
	case spec.Object != nil:
		return compileObject(spec.Object)
	}
	return nil
}

func compilePrometheus(spec *v1alpha1.PrometheusSpec) []compiled {
	const query = "spec.prometheus.query"
	window := time.Duration(0)
	if spec.Window != nil {
		window = spec.Window.Duration
	}
	_, inQuery := variables.Query(query, spec.Query, window)
	_, inCondition := condition.Prometheus(spec.Condition)
	return []compiled{{query, inQuery}, {"spec.prometheus.condition", inCondition}}
}

func compileHTTP(spec *v1alpha1.HTTPSpec) []compiled {
	const path, url = "spec.http.service.path", "spec.http.url"
	var all []compiled
	if spec.Service != nil {
		_, err := variables.Path(path, spec.Service.Path)
		all = append(all, compiled{path, err})
	} else {
		_, err := variables.URL(url, spec.URL)
		all = append(all, compiled{url, err})
	}
	_, err := condition.HTTP(spec.Condition)
	return append(all, compiled{"spec.http.condition", err})
}

func compileObject(spec *v1alpha1.ObjectSpec) []compiled {
	all := []compiled{{field: "spec.object.current"}, {field: "spec.object.failed"}, {field: "spec.object.inProgress"}}
	for i, source := range []string{spec.Current, spec.Failed, spec.InProgress} {
		if source != "" {
			_, all[i].err = condition.Object(all[i].field, source)
		}
	}
	return all
}
