// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// reports simulates the writer of one HealthCheck.
func (s *testEnv) reports(name string, status v1alpha1.HealthStatus) {
	s.ChangeStatus(fixture.MakeHealthCheck(name).Obj(), func(o client.Object) {
		check := o.(*v1alpha1.HealthCheck)
		check.Status.Status, check.Status.Message = status, new("as "+name+" sees it")
	})
}

// The Rollout selects nothing that says whether it is rolled out: it owns such a check.
func TestCheckThatAsksWhatRunsIsResetOnceTheReleaseIsRolledOut(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0",
		fixture.MakeHealthCheck("errors").Prometheus("errors", "value <= 1.0").Healthy().Obj())...)
	s.rest("shop")
	s.fluxApplies()
	s.Wire.Forget()
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(Equal([]string{"patch HealthCheck/status " + own, "patch HealthCheck " + own}),
		"Pods of the release before may still answer")
	s.Expect(marks(s.check("errors"))).To(BeEmpty())

	s.reports("errors", v1alpha1.HealthStatusHealthy)
	s.reports(own, v1alpha1.HealthStatusPending)
	s.Wire.Forget()
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(BeEmpty(), "it is not rolled out")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying))

	s.reports(own, v1alpha1.HealthStatusHealthy)
	s.Wire.Forget()
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(Equal([]string{"patch HealthCheck/status errors", "patch HealthCheck errors"}))
	s.Expect(*s.check("errors").Status.Message).To(Equal(evidence.ResetMessage))
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying), "Healthy of before is no evidence")

	s.reports("errors", v1alpha1.HealthStatusHealthy)
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeInProgress))
}

func TestCheckThatCannotBeMeasuredHoldsPromotionsAndNoPin(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("errors").Prometheus("errors", "value <= 1.0").Obj())...)
	s.deploy("shop")
	s.checksSay(v1alpha1.HealthStatusHealthy) // also what is measured, now that the release is rolled out
	s.rest("shop")
	s.Pass(protected().Obj().Spec.BakeTime.Duration)
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeSucceeded))

	problem := "spec.prometheus.service: Service prometheus does not exist in this namespace"
	says := func(text string) {
		s.ChangeStatus(fixture.MakeHealthCheck("errors").Obj(), func(o client.Object) { o.(*v1alpha1.HealthCheck).Status.Problem = text })
	}
	says(problem)
	s.release("shop", "1.1.0")
	s.rest("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"))
	s.Expect(s.rollout("shop").Status.ReleaseCandidates[0].Holds).To(Equal([]v1alpha1.CandidateHold{{
		Reason: v1alpha1.HealthCheckInvalidReason, Message: "HealthCheck " + s.Namespace + "/errors cannot be measured: " + problem,
	}}))

	s.pinTo("1.1.0")
	s.rest("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.1.0"), "a person has decided")
	s.pin("shop", nil)
	s.fluxApplies()
	for range 2 { // that it is rolled out, and then what is measured
		s.rest("shop")
		s.checksSay(v1alpha1.HealthStatusHealthy)
	}
	s.rest("shop")
	s.Pass(protected().Obj().Spec.BakeTime.Duration)
	s.rest("shop")

	s.release("shop", "1.2.0")
	s.rest("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.1.0"), "the reset has not removed the problem")
	says("")
	s.rest("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.2.0"))
}
