// SPDX-License-Identifier: Apache-2.0

package class

import (
	"context"
	"net/http"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	endpoint "github.com/fluxrollouts/rollout-controller/internal/health/class/http"
	"github.com/fluxrollouts/rollout-controller/internal/health/condition"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
	"github.com/fluxrollouts/rollout-controller/internal/health/probe"
	"github.com/fluxrollouts/rollout-controller/internal/health/variables"
)

const httpField = "spec.http"

// request is a compiled HealthCheck of the class http.
type request struct {
	Means
	*Probe
	namespace string
	spec      *v1alpha1.HTTPSpec
	template  variables.Template
	condition *condition.Expression
	headers   http.Header
}

func (m Means) endpoint(p *Probe, check *v1alpha1.HealthCheck) (err error) {
	r := &request{Means: m, Probe: p, namespace: check.Namespace, spec: check.Spec.HTTP}
	if r.condition, err = condition.HTTP(r.spec.Condition); err != nil {
		return &health.Problem{Text: err.Error()}
	}
	if r.headers, err = probe.Headers(httpField, r.spec.Headers); err != nil {
		return err
	}
	if p.Destination, err = r.parse(); err != nil {
		return err
	}
	p.UsesRelease = r.template.UsesRelease() || r.condition.UsesRelease()
	p.run = r.measure
	return nil
}

// parse parses the URL or the path, and returns the key of what is asked.
func (r *request) parse() (key string, err error) {
	if ref := r.spec.Service; ref != nil {
		if r.template, err = variables.Path(httpField+".service.path", path(ref)); err != nil {
			return "", &health.Problem{Text: err.Error()}
		}
		return keyOf(r.namespace, ref), nil
	}
	if r.template, err = variables.URL(httpField+".url", r.spec.URL); err != nil {
		return "", &health.Problem{Text: err.Error()}
	}
	example, err := r.template.Resolve(example)
	if err != nil {
		return "", &health.Problem{Text: httpField + ".url: " + err.Error()}
	}
	target, err := r.Allowed.Allowed(httpField+".url", example)
	if err != nil {
		return "", err
	}
	return target.Key(), nil
}

// example are values with which a URL is checked before there is a release. They stand
// only in its path and query.
var example = variables.Values{
	Version: "1.0.0", Digest: "sha256:00", Revision: "main", Rollout: "rollout", Namespace: "namespace",
	Window: time.Minute, Reset: time.Unix(0, 0), Now: time.Unix(1, 0),
}

func path(ref *v1alpha1.ServiceReference) string {
	if ref.Path == "" {
		return "/"
	}
	return ref.Path
}

func (r *request) target(ctx context.Context, resolved string) (destination.Target, error) {
	if ref := r.spec.Service; ref != nil {
		return destination.Services{Reader: r.Reader}.Target(ctx, httpField+".service", r.namespace, *ref, resolved)
	}
	return r.Allowed.Allowed(httpField+".url", resolved)
}

func (r *request) measure(ctx context.Context, subject Subject, at time.Time) (health.Outcome, string, error) {
	resolved, err := resolve(httpField, r.template, subject.values(subject.Release, r.namespace, 0, at))
	if err != nil {
		return health.Outcome{}, "", err
	}
	response, err := r.send(ctx, resolved)
	if _, ok := health.IsProblem(err); ok {
		return health.Outcome{}, "", err
	}
	return endpoint.Judge(response, err, r.judge(ctx, subject, at), r.spec.Unreachable), "", nil
}

func (r *request) send(ctx context.Context, resolved string) (endpoint.Response, error) {
	target, err := r.target(ctx, resolved)
	if err != nil {
		return endpoint.Response{}, err
	}
	credentials, err := probe.ReadCredentials(ctx, r.Reader, httpField, r.namespace, r.spec.RequestSpec)
	if err != nil {
		return endpoint.Response{}, err
	}
	client := endpoint.Client{Guard: r.Guard, Clock: r.Clock}
	return client.Do(ctx, endpoint.Request{
		Options: probe.Options{Target: target, Credentials: credentials, Headers: r.headers}, Method: r.spec.Method, Timeout: r.Spec.Timeout,
	})
}

func (r *request) judge(ctx context.Context, subject Subject, at time.Time) endpoint.Condition {
	return func(response endpoint.Response) (bool, error) {
		good, err := r.condition.Holds(ctx, responseOf(response, subject, at))
		return good, shown(httpField+".condition", err)
	}
}

// responseOf returns a response as conditions see it.
func responseOf(r endpoint.Response, subject Subject, at time.Time) condition.Response {
	return condition.Response{
		Status: r.Status, Body: r.Body, Headers: r.Headers, Latency: r.Latency, Release: subject.release(), Elapsed: subject.elapsed(at),
	}
}
