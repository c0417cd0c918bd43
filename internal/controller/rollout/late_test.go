// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// A promotion that is not healthy never says that all is well, and somebody is told of one
// that does not end.
func TestBakeThatIsNotHealthySaysSo(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Obj())...)
	s.rest("shop")
	s.fluxApplies()
	s.rest("shop")
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.rest("shop")

	s.checksSay(v1alpha1.HealthStatusPending)
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Status).To(Equal(metav1.ConditionTrue), "a pod may have been replaced")
	s.Pass(time.Minute)
	s.rest("shop")
	still := "1.0.0: the bake time stands still since 2026-03-02T12:00:00Z; waiting for HealthCheck " + s.Namespace + "/web"
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition)).To(Equal(condition{metav1.ConditionFalse, v1alpha1.HealthNotProvenReason, still}))

	s.Events.Take()
	s.Pass(20 * time.Minute)
	s.rest("shop")
	late := still + "; it was due at 2026-03-02T12:10:00Z"
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition)).To(Equal(condition{metav1.ConditionFalse, v1alpha1.BakeOverdueReason, late}))
	s.Expect(s.Events.Take()).To(Equal([]fixture.Event{{On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.BakeOverdueReason, Message: late}}))
	s.Wire.Forget()
	s.Pass(time.Hour)
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	s.Expect(s.Events.Take()).To(BeEmpty())

	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition)).To(Equal(condition{metav1.ConditionTrue, v1alpha1.RolloutSucceededReason,
		"1.0.0: applied and healthy (1 HealthCheck); baking for 10m0s, until 2026-03-02T13:31:00Z (it stood still for 1h21m0s, while not everything was healthy)"}))
	s.Pass(10 * time.Minute)
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeSucceeded))
}

// A promotion that cannot fail, and whose release is Unhealthy, is not said to be well.
func TestRecoveryThatIsUnhealthySaysSo(t *testing.T) {
	s := open(t, shopWith(baked(), "1.0.0", fixture.MakeHealthCheck("smoke").Obj())...)
	s.deployAndBake("shop")
	s.release("shop", "1.1.0")
	s.fail()
	s.release("shop", "1.1.1")
	s.ask(v1alpha1.UnblockFailedAnnotation, "true")
	s.rest("shop")
	s.fluxApplies()
	s.rest("shop")
	s.checksSay(v1alpha1.HealthStatusUnhealthy)
	s.Pass(time.Minute)
	s.rest("shop")
	ready := s.condition("shop", v1alpha1.ReadyCondition)
	s.Expect([]any{ready.Status, ready.Reason}).To(Equal([]any{metav1.ConditionFalse, v1alpha1.HealthNotProvenReason}), ready.Message)
	s.Expect(ready.Message).To(ContainSubstring("Unhealthy: " + s.Namespace + "/smoke"))
}
