// SPDX-License-Identifier: Apache-2.0

package class_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/class"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// query returns a HealthCheck of the class prometheus, with changes of its spec.
func query(changes ...func(*v1alpha1.PrometheusSpec)) *v1alpha1.HealthCheck {
	check := fixture.MakeHealthCheck("errors").Prometheus("errors", "value <= 1.0").Obj()
	for _, change := range changes {
		change(check.Spec.Prometheus)
	}
	return check
}

// request returns a HealthCheck of the class http, with changes of its spec.
func request(changes ...func(*v1alpha1.HTTPSpec)) *v1alpha1.HealthCheck {
	check := fixture.MakeHealthCheck("web").HTTP("https://web.example.com/healthz").Obj()
	for _, change := range changes {
		change(check.Spec.HTTP)
	}
	return check
}

// means allow one host for all, and have a Prometheus there.
func means(t *testing.T) class.Means {
	t.Helper()
	allowed, err := destination.ParseList([]string{"https://*.example.com"})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return class.Means{Allowed: allowed, Prometheus: "https://prometheus.example.com"}
}

func TestProblemOfASpecNamesItsField(t *testing.T) {
	p := func(change func(*v1alpha1.PrometheusSpec)) *v1alpha1.HealthCheck { return query(change) }
	h := func(change func(*v1alpha1.HTTPSpec)) *v1alpha1.HealthCheck { return request(change) }
	header := []v1alpha1.Header{{Name: "Host", Value: "kubernetes.default"}}
	mixed := query()
	mixed.Spec.HTTP = request().Spec.HTTP
	for name, tt := range map[string]struct {
		check *v1alpha1.HealthCheck
		field string
		says  string
	}{
		"unknown variable":      {p(func(s *v1alpha1.PrometheusSpec) { s.Query = "up{x=\"$(nonsense)\"}" }), "spec.prometheus.query", "nonsense"},
		"variable outside ''":   {p(func(s *v1alpha1.PrometheusSpec) { s.Query = "up $(version)" }), "spec.prometheus.query", "version"},
		"window without one":    {p(func(s *v1alpha1.PrometheusSpec) { s.Query = "rate(x[$(window)])" }), "spec.prometheus.query", "window"},
		"condition":             {p(func(s *v1alpha1.PrometheusSpec) { s.Condition = "value <=" }), "spec.prometheus.condition", ""},
		"condition of no bool":  {p(func(s *v1alpha1.PrometheusSpec) { s.Condition = "value" }), "spec.prometheus.condition", "true or false"},
		"condition too long":    {p(func(s *v1alpha1.PrometheusSpec) { s.Condition = strings.Repeat(" ", 2049) + "true" }), "spec.prometheus.condition", "may have 2048"},
		"header of Prometheus":  {p(func(s *v1alpha1.PrometheusSpec) { s.Headers = header }), "spec.prometheus.headers: ", "Host"},
		"address":               {p(func(s *v1alpha1.PrometheusSpec) { s.Address = "https://prometheus.example.org" }), "spec.prometheus.address", "--health-destinations"},
		"address with a user":   {p(func(s *v1alpha1.PrometheusSpec) { s.Address = "https://a:b@prometheus.example.com" }), "spec.prometheus.address", ""},
		"address by its number": {p(func(s *v1alpha1.PrometheusSpec) { s.Address = "http://2130706433" }), "spec.prometheus.address", ""},
		"condition of a request": {
			h(func(s *v1alpha1.HTTPSpec) { s.Condition = "value <= 1.0" }), "spec.http.condition", "value",
		},
		"header of a request":  {h(func(s *v1alpha1.HTTPSpec) { s.Headers = header }), "spec.http.headers: ", "Host"},
		"URL":                  {h(func(s *v1alpha1.HTTPSpec) { s.URL = "https://169.254.169.254/latest" }), "spec.http.url", ""},
		"URL of the API":       {h(func(s *v1alpha1.HTTPSpec) { s.URL = "https://kubernetes.default/api" }), "spec.http.url", ""},
		"variable in the host": {h(func(s *v1alpha1.HTTPSpec) { s.URL = "https://$(version).example.com/" }), "spec.http.url", ""},
		"path": {h(func(s *v1alpha1.HTTPSpec) {
			s.URL, s.Service = "", &v1alpha1.ServiceReference{Name: "web", Path: "/$(nonsense)"}
		}), "spec.http.service.path", "nonsense"},
		"two blocks": {mixed, "spec.http", "remove"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			probe, err := means(t).Compile(tt.check)
			problem, ok := health.IsProblem(err)
			g.Expect(ok).To(BeTrue(), "%v is no problem", err)
			g.Expect(problem.Text).To(And(HavePrefix(tt.field), ContainSubstring(tt.says)))
			g.Expect(probe.Spec.Interval).To(Equal(30*time.Second), "what follows from the spec is known nevertheless")
		})
	}
}

func TestPrometheusWithoutAnAddress(t *testing.T) {
	g := NewWithT(t)
	_, err := class.Means{}.Compile(query())
	g.Expect(err).To(MatchError("spec.prometheus: neither address nor service is set, and the controller has no --prometheus-address"))
}

func TestWhetherAResultDependsOnTheRelease(t *testing.T) {
	for name, tt := range map[string]struct {
		check *v1alpha1.HealthCheck
		want  bool
	}{
		"a query":                      {query(), false},
		"a query with $(since)":        {query(func(s *v1alpha1.PrometheusSpec) { s.Query = "increase(x[$(elapsed)])" }), false},
		"a query with $(version)":      {query(func(s *v1alpha1.PrometheusSpec) { s.Query = `x{v="$(version)"}` }), true},
		"a query with $(rollout)":      {query(func(s *v1alpha1.PrometheusSpec) { s.Query = `x{r="$(rollout)"}` }), true},
		"a condition with release":     {query(func(s *v1alpha1.PrometheusSpec) { s.Condition = "release.tag != '' && value < 1.0" }), true},
		"a baseline":                   {query(func(s *v1alpha1.PrometheusSpec) { s.Baseline = v1alpha1.BaselineBeforePromotion }), true},
		"a request":                    {request(), false},
		"a path with $(digest)":        {request(func(s *v1alpha1.HTTPSpec) { s.URL += "?d=$(digest)" }), true},
		"a response about the release": {request(func(s *v1alpha1.HTTPSpec) { s.Condition = "json.version == release.tag" }), true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			probe, err := means(t).Compile(tt.check)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(probe.UsesRelease).To(Equal(tt.want))
		})
	}
}

func TestDestinationIsTheHostOrTheService(t *testing.T) {
	for name, tt := range map[string]struct {
		check *v1alpha1.HealthCheck
		want  string
	}{
		"default Prometheus": {query(), "prometheus.example.com:443"},
		"address":            {query(func(s *v1alpha1.PrometheusSpec) { s.Address = "https://thanos.example.com/a" }), "thanos.example.com:443"},
		"URL":                {request(), "web.example.com:443"},
		"service": {request(func(s *v1alpha1.HTTPSpec) {
			s.URL, s.Service = "", &v1alpha1.ServiceReference{Name: "web", Port: "http"}
			s.SecretRef = &v1alpha1.ObjectName{Name: "is looked up later"}
		}), "web.shop-prod.svc:http"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			probe, err := means(t).Compile(tt.check)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(probe.Destination).To(Equal(tt.want))
		})
	}
}
