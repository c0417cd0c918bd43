// SPDX-License-Identifier: Apache-2.0

package class_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/class"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
	"github.com/fluxrollouts/rollout-controller/internal/health/measure"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// marker is what servers write wherever they can. No result may contain it.
const marker = "s3cr3t-marker"

// subject is a promotion of 1.1.0, which was reset a minute before the measurement.
var subject = class.Subject{
	Rollout: "shop", Release: v1alpha1.VersionInfo{Tag: "1.1.0"}, Before: v1alpha1.VersionInfo{Tag: "1.0.0"},
	LeftAt: fixture.Noon.Add(-5 * time.Minute), Reset: fixture.Noon.Add(-time.Minute),
}

// scene is a server, and what measures it.
type scene struct {
	*WithT
	class.Means
	url string
}

func openScene(t *testing.T, handler http.HandlerFunc, objects ...client.Object) *scene {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil // the clock of the test stands still
		handler(w, r)
	}))
	t.Cleanup(server.Close)
	s := &scene{WithT: NewWithT(t), url: server.URL}
	allowed, err := destination.List{}.With(server.URL)
	s.Expect(err).NotTo(HaveOccurred())
	s.Means = class.Means{
		Guard:   destination.Guard{AllowLoopback: true, Protected: func(context.Context) ([]netip.Addr, error) { return nil, nil }},
		Allowed: allowed, Prometheus: server.URL, Reader: fake.NewClientBuilder().WithObjects(objects...).Build(),
		Clock: clocktesting.NewFakePassiveClock(fixture.Noon),
	}
	return s
}

func (s *scene) compile(check *v1alpha1.HealthCheck) *class.Probe {
	probe, err := s.Compile(check)
	s.Expect(err).NotTo(HaveOccurred())
	return probe
}

// measure measures once.
func (s *scene) measure(check *v1alpha1.HealthCheck) class.Result {
	return s.compile(check).Measure(context.Background(), subject, fixture.Noon)
}

// answering returns a server with one response, which contains the marker.
func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Marker", marker)
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}
}

// vector returns an answer of Prometheus with a series for each value.
func vector(values ...string) string {
	series := make([]string, len(values))
	for i, value := range values {
		series[i] = fmt.Sprintf(`{"metric":{"n":"%d","x":%q},"value":[0,%q]}`, i, marker, value)
	}
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(series, ",") + `]}}`
}

func TestMeasurePrometheus(t *testing.T) {
	failed := fmt.Sprintf(`{"status":"error","errorType":"bad_data","error":%q}`, marker)
	for name, tt := range map[string]struct {
		status int
		body   string
		check  *v1alpha1.HealthCheck
		want   measure.Measurement
	}{
		"good":    {200, vector("0.5"), query(), measure.Measurement{Result: v1alpha1.MeasurementGood, Value: "0.5"}},
		"bad":     {200, vector("1.5"), query(), measure.Measurement{Result: v1alpha1.MeasurementBad, Value: "1.5"}},
		"no data": {200, vector(), query(), measure.Measurement{Result: v1alpha1.MeasurementNoData, Message: "the query returns no number"}},
		"NaN":     {200, vector("NaN"), query(), measure.Measurement{Result: v1alpha1.MeasurementNoData, Message: "the query returns no number"}},
		"+Inf":    {200, vector("+Inf"), query(), measure.Measurement{Result: v1alpha1.MeasurementBad, Value: "+Inf"}},
		"several series": {200, vector("0.5", "0.7"), query(), measure.Measurement{
			Result: v1alpha1.MeasurementError, Message: "the query returns several series: aggregate them to one, for example with sum(…) or max(…)",
		}},
		"an error": {400, failed, query(), measure.Measurement{
			Result: v1alpha1.MeasurementError, Message: "Prometheus answers 400 Bad Request (bad_data)",
		}},
		"another page": {200, "<html>" + marker, query(), measure.Measurement{
			Result: v1alpha1.MeasurementError, Message: "the answer is not one of Prometheus: check its address, and that the query returns numbers",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := openScene(t, answering(tt.status, tt.body))
			tt.want.At = fixture.Noon
			s.Expect(s.measure(tt.check)).To(Equal(class.Result{Measurement: tt.want, Query: "errors"}))
		})
	}
}

func TestBaselineIsAskedOncePerPromotion(t *testing.T) {
	var asked []string
	s := openScene(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.FormValue("query")+" "+r.FormValue("time"))
		value := "0.5"
		if strings.Contains(r.FormValue("query"), "1.0.0") {
			value = "0.4"
		}
		_, _ = fmt.Fprint(w, vector(value))
	})
	probe := s.compile(query(func(p *v1alpha1.PrometheusSpec) {
		p.Query, p.Condition, p.Baseline = `x{v="$(version)"}`, "value <= baseline.orValue(0.0) * 1.1", v1alpha1.BaselineBeforePromotion
	}))
	at := func(t time.Time) string { return fmt.Sprint(t.Unix()) }
	for range 2 {
		got := probe.Measure(t.Context(), subject, fixture.Noon)
		s.Expect(got.Result).To(Equal(v1alpha1.MeasurementBad))
		s.Expect(got.Baseline).To(Equal("0.4"))
	}
	s.Expect(asked).To(Equal([]string{
		`x{v="1.0.0"} ` + at(subject.LeftAt), `x{v="1.1.0"} ` + at(fixture.Noon), `x{v="1.1.0"} ` + at(fixture.Noon),
	}))

	next := subject
	next.Before, next.Release, next.LeftAt = subject.Release, v1alpha1.VersionInfo{Tag: "1.2.0"}, fixture.Noon.Add(-2*time.Minute)
	asked = nil
	s.Expect(probe.Measure(t.Context(), next, fixture.Noon).Baseline).To(Equal("0.5"))
	s.Expect(asked[0]).To(Equal(`x{v="1.1.0"} ` + at(next.LeftAt)))

	first := class.Subject{Rollout: "shop", Release: subject.Release}
	asked = nil
	s.Expect(probe.Measure(t.Context(), first, fixture.Noon).Baseline).To(BeEmpty(), "there is no release before")
	s.Expect(asked).To(HaveLen(1))
}

func TestBaselineOfSeveralSeriesIsAnError(t *testing.T) {
	s := openScene(t, answering(200, vector("0.5", "0.7")))
	got := s.measure(query(func(p *v1alpha1.PrometheusSpec) { p.Baseline = v1alpha1.BaselineBeforePromotion }))
	s.Expect(got.Result).To(Equal(v1alpha1.MeasurementError))
	s.Expect(got.Message).To(HavePrefix("the baseline: the query returns several series: aggregate"))
}

func TestMeasureHTTP(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		body   string
		change func(*v1alpha1.HTTPSpec)
		want   measure.Measurement
	}{
		"200": {200, marker, nil, measure.Measurement{Result: v1alpha1.MeasurementGood, Message: "status 200 OK"}},
		"204": {204, "", nil, measure.Measurement{Result: v1alpha1.MeasurementGood, Message: "status 204 No Content"}},
		"301": {301, marker, nil, measure.Measurement{Result: v1alpha1.MeasurementBad, Message: "status 301 Moved Permanently"}},
		"500": {500, marker, nil, measure.Measurement{Result: v1alpha1.MeasurementBad, Message: "status 500 Internal Server Error"}},
		"a condition": {
			200, `{"ok": true}`, func(s *v1alpha1.HTTPSpec) { s.Condition = "json.ok" },
			measure.Measurement{Result: v1alpha1.MeasurementGood, Message: "status 200 OK"},
		},
		"a condition that fails": {
			200, marker, func(s *v1alpha1.HTTPSpec) { s.Condition = "json.ok" },
			measure.Measurement{Result: v1alpha1.MeasurementError},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openScene(t, answering(tt.status, tt.body))
			check := request(func(r *v1alpha1.HTTPSpec) { r.URL = s.url + "/healthz" })
			if tt.change != nil {
				tt.change(check.Spec.HTTP)
			}
			got := s.measure(check)
			s.Expect(got.Problem).To(BeEmpty())
			s.Expect(got.Message).NotTo(ContainSubstring(marker))
			if tt.want.Message == "" {
				tt.want.Message = got.Message
			}
			if tt.want.Value == "" { // the latency, by a clock that stands still
				tt.want.Value = got.Value
			}
			tt.want.At = fixture.Noon
			s.Expect(got.Measurement).To(Equal(tt.want))
		})
	}
}

func TestVariablesStandForThemselvesInAURL(t *testing.T) {
	var asked string
	s := openScene(t, func(_ http.ResponseWriter, r *http.Request) { asked = r.RequestURI })
	got := s.measure(request(func(r *v1alpha1.HTTPSpec) { r.URL = s.url + "/v/$(version)?r=$(rollout)" }))
	s.Expect(got.Result).To(Equal(v1alpha1.MeasurementGood))
	s.Expect(asked).To(Equal("/v/1.1.0?r=shop"))
}

func TestNobodyAnswers(t *testing.T) {
	for policy, want := range map[v1alpha1.UnreachablePolicy]v1alpha1.MeasurementResult{
		"": v1alpha1.MeasurementBad, v1alpha1.UnreachableUnhealthy: v1alpha1.MeasurementBad, v1alpha1.UnreachablePending: v1alpha1.MeasurementError,
	} {
		t.Run("policy "+string(policy), func(t *testing.T) {
			s := openScene(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			got := s.measure(request(func(r *v1alpha1.HTTPSpec) { r.URL, r.Unreachable = s.url, policy }))
			s.Expect(got.Result).To(Equal(want))
			s.Expect(got.Message).To(Equal("the connection is lost"))
			s.Expect(got.Problem).To(BeEmpty())
		})
	}
}

func TestProblemsThatAMeasurementFinds(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "login"}, Data: map[string][]byte{"token": []byte("t0ken")}}
	named := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "named"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeExternalName, ExternalName: "example.com", Ports: []corev1.ServicePort{{Port: 80}},
	}}
	byHand := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "by-hand"}, Spec: corev1.ServiceSpec{
		ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{{Port: 80}},
	}}
	elsewhere := byHand.DeepCopy()
	elsewhere.Namespace, elsewhere.Name, elsewhere.Spec.Selector = "other", "elsewhere", map[string]string{"app": "web"}
	service := func(name string) *v1alpha1.HealthCheck {
		return request(func(s *v1alpha1.HTTPSpec) { s.URL, s.Service = "", &v1alpha1.ServiceReference{Name: name} })
	}
	login := func(name string) *v1alpha1.HealthCheck {
		return query(func(s *v1alpha1.PrometheusSpec) { s.SecretRef = &v1alpha1.ObjectName{Name: name} })
	}
	for name, tt := range map[string]struct {
		check *v1alpha1.HealthCheck
		want  string
	}{
		"a Service that is not there":       {service("web"), "spec.http.service: Service web does not exist"},
		"a Service of another namespace":    {service("elsewhere"), "spec.http.service: Service elsewhere does not exist"},
		"an ExternalName":                   {service("named"), "spec.http.service: "},
		"a Service without a selector":      {service("by-hand"), "spec.http.service: "},
		"a Secret that is not there":        {login("other"), "spec.prometheus.secretRef: Secret other does not exist"},
		"a Secret that is not meant for it": {login("login"), "spec.prometheus.secretRef: Secret login may not be sent"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openScene(t, func(http.ResponseWriter, *http.Request) { t.Error("nothing may be sent") }, secret, named, byHand, elsewhere)
			got := s.measure(tt.check)
			s.Expect(got.Problem).To(HavePrefix(tt.want))
			s.Expect(got.Result).To(Equal(v1alpha1.MeasurementError))
			s.Expect(got.Message).To(HavePrefix(tt.want))
		})
	}
}

func TestCredentialsReachOnlyTheDestination(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "login", Labels: map[string]string{v1alpha1.HealthCredentialsLabel: "true"}},
		Data:       map[string][]byte{"token": []byte("t0ken")},
	}
	var sent string
	s := openScene(t, func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("Authorization")
		_, _ = fmt.Fprint(w, vector("0.5"))
	}, secret)
	got := s.measure(query(func(p *v1alpha1.PrometheusSpec) { p.SecretRef = &v1alpha1.ObjectName{Name: "login"} }))
	s.Expect(got.Result).To(Equal(v1alpha1.MeasurementGood))
	s.Expect(sent).To(Equal("Bearer t0ken"))
	s.Expect(fmt.Sprintf("%+v", got)).NotTo(ContainSubstring("t0ken"))
}

// The operator's credentials are for the default address alone. No HealthCheck can change
// what is sent with them, or where it is sent.
func TestOperatorsCredentialsAreForTheDefaultPrometheusAlone(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kuberik-system", Name: "mimir"}, Data: map[string][]byte{
		"token": []byte("t0ken"), "headers": []byte("X-Scope-OrgID: shop\n"),
	}}
	header := []v1alpha1.Header{{Name: "X-Scope-OrgID", Value: "other"}, {Name: "X-Own", Value: "1"}}
	for name, tt := range map[string]struct {
		change func(s *v1alpha1.PrometheusSpec, url string)
		want   []string // Authorization, X-Scope-OrgID and X-Own
	}{
		"the default":            {func(*v1alpha1.PrometheusSpec, string) {}, []string{"Bearer t0ken", "shop", ""}},
		"headers of its own":     {func(s *v1alpha1.PrometheusSpec, _ string) { s.Headers = header }, []string{"Bearer t0ken", "shop", "1"}},
		"the same, but by name":  {func(s *v1alpha1.PrometheusSpec, url string) { s.Address = url }, []string{"", "", ""}},
		"by name, and a header":  {func(s *v1alpha1.PrometheusSpec, url string) { s.Address, s.Headers = url, header }, []string{"", "other", "1"}},
		"a path of that address": {func(s *v1alpha1.PrometheusSpec, url string) { s.Address = url + "/" }, []string{"", "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var sent []string
			s := openScene(t, func(w http.ResponseWriter, r *http.Request) {
				sent = []string{r.Header.Get("Authorization"), r.Header.Get("X-Scope-OrgID"), r.Header.Get("X-Own")}
				_, _ = fmt.Fprint(w, vector("0.5"))
			}, secret)
			s.PrometheusSecret = client.ObjectKeyFromObject(secret)
			got := s.measure(query(func(p *v1alpha1.PrometheusSpec) { tt.change(p, s.url) }))
			s.Expect(got.Result).To(Equal(v1alpha1.MeasurementGood), got.Message)
			s.Expect(sent).To(Equal(tt.want))
		})
	}
}

func TestOwnCredentialsNeedAnAddressBesideThoseOfTheOperator(t *testing.T) {
	s := openScene(t, func(http.ResponseWriter, *http.Request) { t.Error("nothing may be sent") })
	s.PrometheusSecret = client.ObjectKey{Namespace: "kuberik-system", Name: "mimir"}
	_, err := s.Compile(query(func(p *v1alpha1.PrometheusSpec) { p.SecretRef = &v1alpha1.ObjectName{Name: "login"} }))
	s.Expect(err).To(MatchError("spec.prometheus.secretRef: the default Prometheus is queried with the operator's credentials: remove the field, or set spec.prometheus.address"))
	got := s.measure(query())
	s.Expect(got.Problem).To(Equal("--prometheus-credentials: the Secret does not exist in the controller's namespace: the operator has to create it"))
}
