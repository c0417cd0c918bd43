// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"net/url"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func (s *testEnv) problem(name string) string { return s.check(name).Status.Problem }

func TestProblemOfTheSpecShowsAtOnceAndGoesWithACorrection(t *testing.T) {
	s := open(t, fixture.MakeHealthCheck("errors").Prometheus("errors", "value <=").Obj())
	s.rest("errors")
	s.Expect(s.problem("errors")).To(HavePrefix("spec.prometheus.condition: "))
	status, message := s.status("errors")
	s.Expect(status).To(Equal(pending))
	s.Expect(message).To(Equal("cannot be measured: " + s.problem("errors")))
	s.Expect(s.planned()).To(BeZero())

	s.Change(errorRate().Obj(), func(o client.Object) { o.(*v1alpha1.HealthCheck).Spec.Prometheus.Condition = "value <= 1.0" })
	s.rest("errors")
	s.Expect(s.problem("errors")).To(BeEmpty())
	s.Expect(s.check("errors").Status.ObservedGeneration).To(Equal(int64(2)))
	_, message = s.status("errors")
	s.Expect(message).NotTo(ContainSubstring("cannot be measured"))
	s.Expect(s.server.asked()).To(BeEmpty())
}

func TestProblemOutlivesTheReset(t *testing.T) {
	s := open(t, rollout("shop"), fixture.MakeHealthCheck("errors").Prometheus("errors", "value <=").Obj())
	s.rest("errors")
	problem := s.problem("errors")
	s.reset("errors", "shop")
	s.rest("errors")
	s.Expect(s.problem("errors")).To(Equal(problem))
	s.Expect(s.planned()).To(BeZero())
}

// service adds a Service with a selector that leads to the test server.
func (s *testEnv) service() {
	address, err := url.Parse(s.server.URL)
	s.Expect(err).NotTo(HaveOccurred())
	port, err := strconv.ParseInt(address.Port(), 10, 32)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.Create(s.Ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "prometheus"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "prometheus"}, Ports: []corev1.ServicePort{{Port: int32(port)}}},
	})).To(Succeed())
}

func viaService() *v1alpha1.HealthCheck {
	check := errorRate().Obj()
	check.Spec.Prometheus.Service = &v1alpha1.ServiceReference{Name: "prometheus"}
	check.Spec.Timeout = seconds(1)
	return check
}

func TestProblemThatAMeasurementFindsIsShownUntilOneDoesNot(t *testing.T) {
	s := open(t, rollout("shop"), viaService())
	s.reset("errors", "shop")
	s.rest("errors")
	s.Expect(s.problem("errors")).To(BeEmpty(), "nothing is looked up before a measurement")
	s.pass(delay+shift, "errors")
	s.measured()
	s.Expect(s.problem("errors")).To(Equal("spec.prometheus.service: Service prometheus does not exist in this namespace"))
	status, message := s.status("errors")
	s.Expect(status).To(Equal(pending))
	s.Expect(message).To(Equal("cannot be measured: " + s.problem("errors")))

	s.service()
	s.pass(interval, "errors")
	s.measured()
	s.Expect(s.problem("errors")).To(BeEmpty())
}

// A problem holds promotions back. If nobody looked for its end, it would never have one.
func TestProblemThatAMeasurementFindsIsLookedAtAfterThePromotion(t *testing.T) {
	s := open(t, rollout("shop"), viaService())
	s.reset("errors", "shop")
	s.rest("errors")
	s.pass(delay+shift, "errors")
	s.measured()
	s.ends("shop", v1alpha1.BakeFailed)
	s.rest("errors")
	s.Expect(s.problem("errors")).NotTo(BeEmpty())
	s.Expect(s.planned()).To(Equal(1))

	s.service()
	s.pass(time.Minute, "errors")
	s.measured()
	s.Expect(s.problem("errors")).To(BeEmpty())
	s.Expect(s.planned()).To(BeZero())
}

// selecting lets a Rollout select the HealthChecks that have a label app.
func (s *testEnv) selecting(rollout, app string) {
	s.Change(fixture.MakeRollout(rollout).Obj(), func(o client.Object) {
		o.(*v1alpha1.Rollout).Spec.HealthCheckSelector = &v1alpha1.HealthCheckSelector{MatchLabels: map[string]string{"app": app}}
	})
}

// labelled gives a HealthCheck the label app.
func (s *testEnv) labelled(name, app string) {
	s.Change(fixture.MakeHealthCheck(name).Obj(), func(o client.Object) { o.SetLabels(map[string]string{"app": app}) })
}

// The mark of a reset stays when the Rollout does not select the HealthCheck any more.
func TestRolloutThatDoesNotSelectACheckDoesNotShareIt(t *testing.T) {
	for name, leave := range map[string]func(s *testEnv){
		"its selector has changed":   func(s *testEnv) { s.selecting("cart", "cart") },
		"the check has other labels": func(s *testEnv) { s.selecting("cart", "cart"); s.labelled("errors", "shop") },
		"it selects nothing": func(s *testEnv) {
			s.Change(fixture.MakeRollout("cart").Obj(), func(o client.Object) { o.(*v1alpha1.Rollout).Spec.HealthCheckSelector = nil })
		},
		"it selects in other namespaces": func(s *testEnv) { s.selectingIn("cart", map[string]string{"team": "cart"}) },
		"it does not exist":              func(s *testEnv) { s.Remove(&v1alpha1.Rollout{}, "cart") },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, rollout("shop"), rollout("cart"), perRelease())
			s.reset("errors", "shop")
			s.reset("errors", "cart")
			s.rest("errors")
			s.Expect(s.problem("errors")).To(Equal(shared))
			s.ends("cart", v1alpha1.BakeSucceeded)
			s.rest("errors")
			s.Expect(s.problem("errors")).To(Equal(shared), "its next promotion depends on the check")
			leave(s)
			s.rest("errors")
			s.Expect(s.problem("errors")).To(BeEmpty())
			s.Expect(s.planned()).To(Equal(1))
		})
	}
}

func perRelease() *v1alpha1.HealthCheck {
	return fixture.MakeHealthCheck("errors").Prometheus(`errors{version="$(version)"}`, "value <= 1.0").Obj()
}

// selectingIn lets a Rollout select all HealthChecks of the namespaces that have labels.
func (s *testEnv) selectingIn(rollout string, labels map[string]string) {
	s.Change(fixture.MakeRollout(rollout).Obj(), func(o client.Object) {
		o.(*v1alpha1.Rollout).Spec.HealthCheckSelector = &v1alpha1.HealthCheckSelector{
			Selector: &metav1.LabelSelector{}, NamespaceSelector: &metav1.LabelSelector{MatchLabels: labels},
		}
	})
}

func TestRolloutsThatShareACheck(t *testing.T) {
	s := open(t, rollout("shop"), rollout("cart"), perRelease(), fixture.MakeHealthCheck("all").Prometheus("all", "value <= 1.0").Obj())
	for _, check := range []string{"errors", "all"} {
		s.reset(check, "shop")
		s.rest(check)
		s.Expect(s.problem(check)).To(BeEmpty())
		s.reset(check, "cart")
		s.rest(check)
	}
	s.Expect(s.problem("errors")).To(Equal(shared))
	s.Expect(s.problem("all")).To(BeEmpty())
	s.Expect(s.planned()).To(Equal(1))

	s.after(delay+shift, "all")
	status, _ := s.status("all")
	s.Expect(status).To(Equal(healthy))
	s.Expect(s.check("all").Status.Release).To(BeNil(), "it is about both")
	s.ends("shop", v1alpha1.BakeSucceeded)
	s.rest("all")
	s.Expect(s.planned()).To(Equal(1), "the other one still depends on it")
	s.ends("cart", v1alpha1.BakeSucceeded)
	s.rest("all")
	s.Expect(s.planned()).To(BeZero())

	s.Remove(&v1alpha1.Rollout{}, "cart")
	s.rest("errors")
	s.Expect(s.problem("errors")).To(BeEmpty(), "it is not shared any more")
}
