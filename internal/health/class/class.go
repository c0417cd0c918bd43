// SPDX-License-Identifier: Apache-2.0

// Package class makes a probe of a HealthCheck: it compiles what the author has written
// once, and measures with it as often as needed.
//
//	class.go       what all classes have in common
//	prometheus.go  the class prometheus
//	http.go        the class http
//	object.go      the class object
//	job.go         the class job
package class

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/job"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/object"
	"github.com/fluxrollouts/rollout-controller/internal/health/condition"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
	"github.com/fluxrollouts/rollout-controller/internal/health/measure"
	"github.com/fluxrollouts/rollout-controller/internal/health/probe"
	"github.com/fluxrollouts/rollout-controller/internal/health/variables"
)

// Means are what probes measure with.
type Means struct {
	// Guard checks each address that a connection is opened to.
	Guard destination.Guard
	// Allowed are the destinations beyond the HealthCheck's own namespace.
	Allowed destination.List
	// Prometheus is the address of HealthChecks that name none. It is empty if there is no
	// such address, and must be allowed.
	Prometheus string
	// PrometheusSecret is what is sent to that address when a HealthCheck names none; empty if
	// there is nothing to send.
	PrometheusSecret types.NamespacedName
	// Reader reads Services, EndpointSlices and Secrets: live, so that nothing is watched.
	Reader client.Reader
	// Objects reads the objects of the class object.
	Objects *object.Reader
	// Jobs runs the Jobs of the class job.
	Jobs *job.Runner
	// Clock is the clock.
	Clock clock.PassiveClock
}

// Subject is what is measured.
type Subject struct {
	// Rollout is the name of the Rollout that has reset the HealthCheck; empty if none has.
	Rollout string
	// RolloutUID is its UID.
	RolloutUID types.UID
	// Entry is the ID of its current history entry, and Retry identifies the last retry.
	Entry int64
	Retry string
	// Number is how many measurements since the reset were good or bad.
	Number int
	// Release is the one that the Rollout has promoted last, and Before is the one that
	// succeeded last before it.
	Release, Before v1alpha1.VersionInfo
	// LeftAt is when the promotion was recorded that first replaced Before.
	LeftAt time.Time
	// Reset is when the HealthCheck was reset.
	Reset time.Time
}

// Result is the result of one measurement.
type Result struct {
	measure.Measurement
	// Query is what was asked, with its variables replaced, as a status has space for it.
	Query string
	// Problem is why it cannot be measured as it stands; empty if it can.
	Problem string
}

// Probe measures one HealthCheck.
type Probe struct {
	// Spec defines when it measures, and what the results mean.
	Spec measure.Spec
	// Destination identifies what it asks. Only some of the probes with the same one
	// measure at a time.
	Destination string
	// UsesRelease is true if the result depends on the release or the Rollout: then Rollouts
	// cannot share the HealthCheck.
	UsesRelease bool

	run func(ctx context.Context, subject Subject, at time.Time) (outcome health.Outcome, query string, err error)
}

// Compile returns the probe of a HealthCheck of a class that is measured. The error is a
// problem: it says what to change in the spec.
func (m Means) Compile(check *v1alpha1.HealthCheck) (*Probe, error) {
	blocks := measure.BlocksOf(check.Spec)
	spec := measure.NewSpec(*check.Spec.Class, check.Spec.MeasuringSpec, blocks)
	p := &Probe{Spec: spec}
	if problem := measure.ProblemOf(spec, blocks); problem.Text != "" {
		return p, &health.Problem{Text: problem.Text}
	}
	switch spec.Class {
	case v1alpha1.HealthCheckClassPrometheus:
		return p, m.prometheus(p, check)
	case v1alpha1.HealthCheckClassHTTP:
		return p, m.endpoint(p, check)
	case v1alpha1.HealthCheckClassObject:
		return p, m.object(p, check)
	case v1alpha1.HealthCheckClassJob:
		return p, m.job(p, check)
	}
	return p, health.Problemf("spec.class: %s is not supported", spec.Class)
}

// Measure measures once. It takes at most the timeout of the spec, and some moments.
func (p *Probe) Measure(ctx context.Context, subject Subject, at time.Time) Result {
	outcome, query, err := p.run(ctx, subject, at)
	if problem, ok := health.IsProblem(err); ok {
		outcome = health.Invalid(problem.Text)
	} else if err != nil {
		outcome = health.Unobserved(probe.Cause(err))
	}
	return Result{
		Measurement: measure.Measurement{
			At: at, Value: outcome.Value, Baseline: outcome.Baseline, Result: outcome.Result, Message: outcome.Message,
		},
		Query: variables.Shown(query), Problem: outcome.Problem,
	}
}

// values returns the values of the variables for a release.
func (s Subject) values(release v1alpha1.VersionInfo, namespace string, window time.Duration, at time.Time) variables.Values {
	return variables.Values{
		Version: release.Tag, Digest: ptr.Deref(release.Digest, ""), Revision: ptr.Deref(release.Revision, ""), Rollout: s.Rollout, Namespace: namespace,
		Window: window, Reset: s.Reset, Now: at,
	}
}

// release returns the variable release of conditions.
func (s Subject) release() condition.Release {
	return condition.Release{Tag: s.Release.Tag, Digest: ptr.Deref(s.Release.Digest, ""), Version: ptr.Deref(s.Release.Version, ""), Revision: ptr.Deref(s.Release.Revision, "")}
}

// elapsed returns the time since the reset; zero if there was none.
func (s Subject) elapsed(at time.Time) time.Duration {
	if s.Reset.IsZero() {
		return 0
	}
	return max(0, at.Sub(s.Reset))
}

// resolve replaces variables. A value that is not known is not a problem of the spec: it
// may become known with the next release.
func resolve(field string, template variables.Template, values variables.Values) (string, error) {
	resolved, err := template.Resolve(values)
	if err != nil {
		return "", probe.Fault(fmt.Sprintf("%s: %s", field, err))
	}
	return resolved, nil
}

// keyOf identifies a Service.
func keyOf(namespace string, ref *v1alpha1.ServiceReference) string {
	return strings.Join([]string{ref.Name, namespace, "svc:" + ref.Port}, ".")
}
