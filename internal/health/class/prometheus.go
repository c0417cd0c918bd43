// SPDX-License-Identifier: Apache-2.0

package class

import (
	"context"
	"maps"
	"net/http"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/prometheus"
	"github.com/fluxrollouts/rollout-controller/internal/health/condition"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
	"github.com/fluxrollouts/rollout-controller/internal/health/probe"
	"github.com/fluxrollouts/rollout-controller/internal/health/variables"
)

const prometheusField = "spec.prometheus"

// query is a compiled HealthCheck of the class prometheus.
type query struct {
	Means
	*Probe
	namespace string
	spec      *v1alpha1.PrometheusSpec
	template  variables.Template
	condition *condition.Expression
	headers   http.Header
	baseline  baseline
}

// baseline remembers what was measured for the last good time: the past does not change, so
// it is asked for once. Only one measurement of a probe is under way.
type baseline struct {
	tag    string
	leftAt time.Time
	value  *float64
}

func (m Means) prometheus(p *Probe, check *v1alpha1.HealthCheck) (err error) {
	q := &query{Means: m, Probe: p, namespace: check.Namespace, spec: check.Spec.Prometheus}
	window := duration(q.spec)
	if q.template, err = variables.Query(prometheusField+".query", q.spec.Query, window); err != nil {
		return &health.Problem{Text: err.Error()}
	}
	if q.condition, err = condition.Prometheus(q.spec.Condition); err != nil {
		return &health.Problem{Text: err.Error()}
	}
	if q.headers, err = probe.Headers(prometheusField, q.spec.Headers); err != nil {
		return err
	}
	if q.isOperators() && (q.spec.SecretRef != nil || q.spec.CertSecretRef != nil) {
		return health.Problemf("%s.secretRef: the default Prometheus is queried with the operator's credentials: remove the field, or set spec.prometheus.address", prometheusField)
	}
	p.UsesRelease = q.template.UsesRelease() || q.condition.UsesRelease() || q.compares()
	p.run = q.measure
	p.Destination, err = q.destination()
	return err
}

func duration(spec *v1alpha1.PrometheusSpec) time.Duration {
	if spec.Window == nil {
		return 0
	}
	return spec.Window.Duration
}

// isOperators reports whether the operator has set both what is asked and with which
// credentials.
func (q *query) isOperators() bool {
	return q.spec.Address == "" && q.spec.Service == nil && q.PrometheusSecret.Name != ""
}

func (q *query) compares() bool { return q.spec.Baseline == v1alpha1.BaselineBeforePromotion }

// destination returns the key of the Prometheus that is asked, or why it may not be.
func (q *query) destination() (string, error) {
	if q.spec.Service != nil {
		return keyOf(q.namespace, q.spec.Service), nil
	}
	target, err := q.address()
	if err != nil {
		return "", err
	}
	return target.Key(), nil
}

func (q *query) address() (destination.Target, error) {
	address := q.spec.Address
	if address == "" {
		address = q.Prometheus
	}
	if address == "" {
		return destination.Target{}, health.Problemf("%s: neither address nor service is set, and the controller has no --prometheus-address", prometheusField)
	}
	return q.Allowed.Allowed(prometheusField+".address", address)
}

func (q *query) target(ctx context.Context) (destination.Target, error) {
	if ref := q.spec.Service; ref != nil {
		return destination.Services{Reader: q.Reader}.Target(ctx, prometheusField+".service", q.namespace, *ref, ref.Path)
	}
	return q.address()
}

func (q *query) measure(ctx context.Context, subject Subject, at time.Time) (health.Outcome, string, error) {
	text, err := resolve(prometheusField+".query", q.template, subject.values(subject.Release, q.namespace, duration(q.spec), at))
	if err != nil {
		return health.Outcome{}, "", err
	}
	server, err := q.open(ctx)
	if err != nil {
		return health.Outcome{}, text, err
	}
	defer server.Close()
	before, err := q.before(ctx, server, subject)
	if err != nil {
		return health.Outcome{}, text, err
	}
	value, err := server.Ask(ctx, prometheus.Question{Query: text, At: at, Since: subject.Reset, Timeout: q.Spec.Timeout})
	return prometheus.Judge(value, err, before, q.judge(ctx, subject, at)), text, nil
}

func (q *query) open(ctx context.Context) (*prometheus.Server, error) {
	target, err := q.target(ctx)
	if err != nil {
		return nil, err
	}
	options := probe.Options{Target: target, Headers: q.headers}
	if q.isOperators() {
		err = q.addOperators(ctx, &options)
	} else {
		options.Credentials, err = probe.ReadCredentials(ctx, q.Reader, prometheusField, q.namespace, q.spec.RequestSpec)
	}
	if err != nil {
		return nil, err
	}
	return prometheus.Open(ctx, q.Guard, q.Clock.Now, options)
}

// addOperators adds the credentials of the operator. Their headers replace those of the
// HealthCheck.
func (q *query) addOperators(ctx context.Context, options *probe.Options) error {
	credentials, headers, err := probe.ReadOwn(ctx, q.Reader, "--prometheus-credentials", q.PrometheusSecret)
	if err != nil {
		return err
	}
	options.Credentials, options.Headers = credentials, q.headers.Clone()
	maps.Copy(options.Headers, headers)
	return nil
}

// before returns what the same query says of the moment at which the last good release was
// left; nil if nothing is compared, or if there is no such release, or no number.
func (q *query) before(ctx context.Context, server *prometheus.Server, subject Subject) (*float64, error) {
	if !q.compares() || subject.Before.Tag == "" {
		return nil, nil
	}
	if q.baseline.tag == subject.Before.Tag && q.baseline.leftAt.Equal(subject.LeftAt) {
		return q.baseline.value, nil
	}
	text, err := resolve(prometheusField+".query", q.template, subject.values(subject.Before, q.namespace, duration(q.spec), subject.LeftAt))
	if err != nil {
		return nil, nil // that release has no such value, so there is no number either
	}
	value, err := server.Ask(ctx, prometheus.Question{Query: text, At: subject.LeftAt, Timeout: q.Spec.Timeout})
	if err != nil {
		return nil, probe.Fault("the baseline: " + probe.Cause(err))
	}
	q.baseline = baseline{tag: subject.Before.Tag, leftAt: subject.LeftAt, value: value}
	return value, nil
}

func (q *query) judge(ctx context.Context, subject Subject, at time.Time) prometheus.Condition {
	return func(value float64, before *float64) (bool, error) {
		sample := condition.Sample{Value: value, Baseline: before, Release: subject.release(), Elapsed: subject.elapsed(at)}
		good, err := q.condition.Holds(ctx, sample)
		return good, shown(prometheusField+".condition", err)
	}
}

// shown marks the error of a condition as one that may be shown: it contains no text of
// another server.
func shown(field string, err error) error {
	if err == nil {
		return nil
	}
	return probe.Fault(field + ": " + err.Error())
}
