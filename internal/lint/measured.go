// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
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
	for _, o := range r.byKind[healthCheckKind] {
		check := &v1alpha1.HealthCheck{}
		switch {
		case o.isUnknown("spec"):
			r.skip(at{o, []string{"spec"}}, "it has variables whose values are not known")
		case len(o.problems) > 0 || o.decode(o.fields("spec"), &check.Spec) != nil || !check.IsMeasured():
		default:
			if problem := problemOf(&check.Spec); problem != "" {
				r.find(at{o, placeOf(problem)}, fmt.Sprintf("%s cannot be measured, and holds automatic promotions: %s", o, problem), "correct the field")
			}
		}
	}
}

// placeOf returns the field at the beginning of a problem.
func placeOf(problem string) []string {
	field, _, _ := strings.Cut(problem, " ")
	return strings.Split(strings.TrimSuffix(field, ":"), ".")
}

// problemOf returns why a HealthCheck cannot be measured as it is; empty if it can.
func problemOf(spec *v1alpha1.HealthCheckSpec) string {
	blocks := measure.BlocksOf(*spec)
	if problem := measure.Problem(measure.NewSpec(*spec.Class, spec.MeasuringSpec, blocks), blocks); problem != "" {
		return problem
	}
	var err error
	switch {
	case spec.Prometheus != nil:
		err = compilePrometheus(spec.Prometheus)
	case spec.HTTP != nil:
		err = compileHTTP(spec.HTTP)
	case spec.Object != nil:
		err = compileObject(spec.Object)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func compilePrometheus(spec *v1alpha1.PrometheusSpec) error {
	window := time.Duration(0)
	if spec.Window != nil {
		window = spec.Window.Duration
	}
	if _, err := variables.Query("spec.prometheus.query", spec.Query, window); err != nil {
		return err //nolint:wrapcheck // it names the field
	}
	_, err := condition.Prometheus(spec.Condition)
	return err //nolint:wrapcheck // likewise
}

func compileHTTP(spec *v1alpha1.HTTPSpec) (err error) {
	if spec.Service != nil {
		_, err = variables.Path("spec.http.service.path", spec.Service.Path)
	} else {
		_, err = variables.URL("spec.http.url", spec.URL)
	}
	if err == nil {
		_, err = condition.HTTP(spec.Condition)
	}
	if err == nil && spec.Measure != "" {
		_, err = condition.HTTPMeasure(spec.Measure)
	}
	return err //nolint:wrapcheck // it names the field
}

func compileObject(spec *v1alpha1.ObjectSpec) error {
	for _, expression := range []struct{ field, source string }{
		{"spec.object.current", spec.Current}, {"spec.object.failed", spec.Failed}, {"spec.object.inProgress", spec.InProgress},
	} {
		if expression.source == "" {
			continue
		}
		if _, err := condition.Object(expression.field, expression.source); err != nil {
			return err //nolint:wrapcheck // it names the field
		}
	}
	return nil
}
