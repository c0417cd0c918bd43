// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestNothingIsAskedBeforeTheResetAndTheDelay(t *testing.T) {
	s := open(t, rollout("shop"), errorRate().Obj())
	s.rest("errors")
	s.pass(time.Hour, "errors")
	s.Expect(s.planned()).To(BeZero(), "no promotion depends on it yet")

	s.reset("errors", "shop")
	s.rest("errors")
	s.Expect(s.planned()).To(Equal(1))
	s.pass(delay-time.Second, "errors")
	s.Expect(s.server.asked()).To(BeEmpty())
	s.after(shift+time.Second, "errors")

	status, message := s.status("errors")
	s.Expect(status).To(Equal(healthy))
	s.Expect(message).To(Equal("0.5 (1 of 1 good; value <= 1.0)"))
	got := s.check("errors").Status
	s.Expect(got.Query).To(Equal("errors"))
	s.Expect(got.Measurements).To(HaveLen(1))
	s.Expect(got.Measurements[0].Value).To(Equal("0.5"))
	s.Expect(got.Release).To(Equal(&v1alpha1.MeasuredRelease{Tag: "1.1.0"}))
	s.Expect(got.LastErrorTime).To(BeNil())
}

func TestThreeBadInARowAreUnhealthySinceTheFirst(t *testing.T) {
	s := open(t, rollout("shop"), errorRate().Obj())
	s.server.says("2")
	s.begin("errors")
	first := s.clock.Now()
	s.server.says("3")
	s.after(interval, "errors")
	status, _ := s.status("errors")
	s.Expect(status).To(Equal(pending), "two are not enough")
	s.server.says("4.25")
	s.after(interval, "errors")

	status, message := s.status("errors")
	s.Expect(status).To(Equal(unhealthy))
	s.Expect(message).To(Equal("2, 3, 4.25 (3 of 3 bad; value <= 1.0)"))
	s.Expect(s.check("errors").Status.LastErrorTime.Time).To(BeTemporally("==", first))
}

func TestErrorsAndEmptyAnswersDecideNothing(t *testing.T) {
	s := open(t, rollout("shop"), errorRate().Obj())
	s.server.answers(http.StatusServiceUnavailable)
	s.begin("errors")
	status, message := s.status("errors")
	s.Expect(status).To(Equal(pending))
	s.Expect(message).To(Equal("not observed: Prometheus answers 503 Service Unavailable"))
	s.server.answers(http.StatusOK)
	s.server.says("")
	s.after(interval, "errors")
	status, _ = s.status("errors")
	s.Expect(status).To(Equal(pending))
	s.server.says("1")
	s.after(interval, "errors")
	status, _ = s.status("errors")
	s.Expect(status).To(Equal(healthy))
}

func TestPrometheusThatIsDownMakesAVerdictStale(t *testing.T) {
	s := open(t, rollout("shop"), errorRate().Obj())
	s.begin("errors")
	s.server.answers(http.StatusBadGateway)
	for range 2 {
		s.after(interval, "errors")
		status, _ := s.status("errors")
		s.Expect(status).To(Equal(healthy))
	}
	s.after(interval, "errors")
	status, message := s.status("errors")
	s.Expect(status).To(Equal(pending))
	s.Expect(message).To(HavePrefix("not observed since "))
	s.Expect(s.check("errors").Status.LastErrorTime).To(BeNil(), "it fails nobody")
}

func TestPassIsRequestedForWhenTimeAloneChangesTheVerdict(t *testing.T) {
	s := open(t, rollout("shop"), errorRate().Obj())
	s.begin("errors")
	s.Expect(s.rest("errors")).To(Equal(ctrl.Result{RequeueAfter: 3 * interval}))
}

func TestNothingIsAskedAfterThePromotionHasEnded(t *testing.T) {
	s := open(t, rollout("shop"), errorRate().Obj())
	s.begin("errors")
	s.ends("shop", v1alpha1.BakeSucceeded)
	s.Expect(s.rest("errors")).To(Equal(ctrl.Result{}))
	s.Expect(s.planned()).To(BeZero())
	s.Wire.Forget()
	s.pass(24*time.Hour, "errors")
	status, _ := s.status("errors")
	s.Expect(status).To(Equal(healthy), "at rest, time changes nothing")
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	s.Expect(s.server.asked()).To(HaveLen(1))
}

func TestUnhealthyIsAskedUntilItIsHealthy(t *testing.T) {
	s := open(t, rollout("shop"), errorRate().Obj())
	s.server.says("2")
	s.begin("errors")
	s.after(interval, "errors")
	s.after(interval, "errors")
	failed := s.check("errors").Status.LastErrorTime
	s.ends("shop", v1alpha1.BakeFailed)
	s.rest("errors")
	s.pass(interval, "errors")
	s.Expect(s.planned()).To(Equal(1), "after a minute, not after the interval")
	s.after(time.Minute-interval, "errors")
	s.server.says("0")
	s.after(time.Minute, "errors")
	status, _ := s.status("errors")
	s.Expect(status).To(Equal(healthy))
	s.Expect(s.check("errors").Status.LastErrorTime.Time).To(BeTemporally("==", failed.Time))
	s.Expect(s.planned()).To(BeZero())
}

func TestNotEnforcedIsHealthyAndSaysWhatItWouldBe(t *testing.T) {
	s := open(t, rollout("shop"), errorRate().Enforced(false).Obj())
	s.server.says("2")
	s.begin("errors")
	for range 4 { // other words are written once a minute at most
		s.after(interval, "errors")
	}
	status, message := s.status("errors")
	s.Expect(status).To(Equal(healthy))
	s.Expect(message).To(Equal("would be Unhealthy: 2, 2, 2 (3 of 3 bad; value <= 1.0)"))
	s.Expect(s.check("errors").Status.LastErrorTime).To(BeNil())
}

func TestApplicationIsMeasuredWithoutDelay(t *testing.T) {
	s := open(t, rollout("shop"))
	s.Add(fixture.MakeHealthCheck("web").HTTP(s.server.URL + "/healthz?v=$(version)").Obj())
	s.rest("web")
	s.reset("web", "shop")
	s.rest("web")
	s.after(shift, "web")
	status, message := s.status("web")
	s.Expect(status).To(Equal(healthy))
	s.Expect(message).To(ContainSubstring("status 200 OK"))
	s.server.answers(http.StatusInternalServerError)
	for range 3 {
		s.after(interval, "web")
	}
	status, message = s.status("web")
	s.Expect(status).To(Equal(unhealthy))
	s.Expect(message).To(ContainSubstring("status 500 Internal Server Error"))
}

func TestWritesAreBounded(t *testing.T) {
	check := errorRate().Obj()
	check.Spec.Interval = seconds(10)
	s := open(t, rollout("shop"), check)
	s.begin("errors")
	s.Wire.Forget()
	for i := range 60 { // ten minutes
		s.server.says([]string{"0.1", "0.2", "0.3"}[i%3])
		s.after(10*time.Second, "errors")
	}
	s.Expect(len(s.Wire.Writes())).To(BeNumerically("<=", 11), "%v", s.Wire.Writes())
	s.Expect(s.check("errors").Status.Measurements).To(HaveLen(10))
}

// A result may arrive while a pass runs that does not know it. What that pass plans is what
// was just measured.
func TestResultThatArrivesDuringAPassIsNotMeasuredAgain(t *testing.T) {
	s := open(t, rollout("shop"), errorRate().Obj())
	s.begin("errors")
	answer := s.server.block()
	s.pass(interval, "errors")
	s.Eventually(s.server.asked, 10*time.Second).Should(HaveLen(2))

	check := s.check("errors")
	subject, err := s.reconciler.subjectOf(s.Ctx, check)
	s.Expect(err).NotTo(HaveOccurred())
	state := s.reconciler.states.of(s.Key("errors"))
	decided := state.advance(check, &subject, s.clock.Now())
	answer()
	s.Eventually(s.planned, 10*time.Second).Should(BeZero(), "the result is there")
	s.reconciler.plan(check, state, subject, decided)

	s.Eventually(s.planned, 10*time.Second).Should(BeZero(), "what was planned has ended")
	s.Expect(s.server.asked()).To(HaveLen(2))
	s.measured()
	s.after(interval, "errors")
}

func TestChecksOfOtherWritersAreNeverTouched(t *testing.T) {
	s := open(t, rollout("shop"),
		fixture.MakeHealthCheck("bare").Class(v1alpha1.HealthCheckClassPrometheus).Obj(),
		fixture.MakeHealthCheck("alert").Class("prometheus-alert").Obj(),
		fixture.MakeHealthCheck("none").Obj())
	for _, name := range []string{"bare", "alert", "none"} {
		s.reset(name, "shop")
		before := s.check(name)
		s.Expect(s.reconcile(name)).To(Equal(ctrl.Result{}))
		s.pass(time.Hour, name)
		s.Expect(s.check(name)).To(Equal(before))
	}
	s.Expect(s.planned()).To(BeZero())
	s.Expect(s.Wire.Writes()).To(BeEmpty())
}

func TestCheckThatIsGoneOrOfAnotherWriterIsForgotten(t *testing.T) {
	for name, end := range map[string]func(s *testEnv){
		"deleted": func(s *testEnv) { s.Remove(&v1alpha1.HealthCheck{}, "errors") },
		"of another class": func(s *testEnv) {
			s.Change(errorRate().Obj(), func(o client.Object) {
				o.(*v1alpha1.HealthCheck).Spec = fixture.MakeHealthCheck("errors").Class("prometheus-alert").Obj().Spec
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, rollout("shop"), errorRate().Obj())
			s.begin("errors")
			release := s.server.block()
			s.pass(interval, "errors")
			s.Eventually(s.server.asked, 10*time.Second).Should(HaveLen(2))
			end(s)
			s.Wire.Forget()
			s.reconcile("errors")
			s.Eventually(s.planned, 10*time.Second).Should(BeZero(), "what is under way is cancelled")
			release()
			s.Expect(s.reconciler.states.has(s.Key("errors"))).To(BeFalse())
			s.Expect(s.woken).To(BeEmpty())
			s.Expect(s.Wire.Writes()).To(BeEmpty())
		})
	}
}
