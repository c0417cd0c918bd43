// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestReadySaysAtOnceThatADeploymentIsInTrouble(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Healthy().Obj())...)
	s.rest("shop")
	s.fluxFails("shop", "Deployment shop misses its deadline")
	s.rest("shop")
	const waiting = "1.0.0: waiting for Flux to apply 1.0.0 to 2 targets, then for 1 HealthCheck"
	const failed = waiting + "; Kustomization shop: Deployment shop misses its deadline"
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition)).To(Equal(condition{metav1.ConditionTrue, v1alpha1.RolloutSucceededReason, failed}))
	s.checksSay(v1alpha1.HealthStatusUnhealthy)
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Message).To(Equal(failed + "; Unhealthy: " + s.Namespace + "/web"))
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.fluxApplies()
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Message).NotTo(ContainSubstring("deadline"))
}

func TestReadySaysAllThatHoldsARelease(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").ReleaseUpdateInterval(time.Hour), "1.0.0")...)
	s.deploy("shop")
	s.Add(fixture.MakeGate("approval", "shop").Allow().Obj())
	s.release("shop", "1.1.0")
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Message).To(Equal("1.0.0: applied; " +
		"1.1.0 waits: RolloutGate approval does not allow 1.1.0; spec.releaseUpdateInterval allows the next promotion at 2026-03-02T13:00:00Z"))
}

// Flux reports with each attempt how long it took.
func TestFailureThatTakesLongerIsNoChange(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.rest("shop")
	s.fluxFails("shop", "health check failed after 25.062501ms: Deployment shop")
	s.rest("shop")
	s.Wire.Forget()
	s.fluxFails("shop", "health check failed after 31.9ms: Deployment shop")
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	s.fluxFails("shop", "health check failed after 31.9ms: Deployment shop, Deployment web")
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(HaveLen(1))
}

func TestMarkedSuccessfulIsSaidAfterAnOutage(t *testing.T) {
	s := openBake(t)
	s.deploy("shop")
	s.markSuccessful()
	s.rest("shop")
	marked := condition{metav1.ConditionTrue, v1alpha1.DeploymentMarkedSuccessfulReason, ""}
	s.Expect(s.ready()).To(Equal(marked))
	s.failReads(func(_ client.Object, list client.ObjectList) bool {
		_, is := list.(*v1alpha1.RolloutGateList)
		return is
	})
	_, _ = s.try("shop")
	s.Expect(s.ready().Reason).To(Equal(v1alpha1.GateListFailedReason))
	s.failReads(nil)
	s.rest("shop")
	s.Expect(s.ready()).To(Equal(marked))
}

// A Kustomization may consume an OCIRepository of another namespace.
func TestSourceElsewhereWakesTheRolloutsOfItsConsumers(t *testing.T) {
	s := open(t, fixture.MakeRollout("shop").Obj())
	elsewhere := s.OpenNamespace(nil)
	consumer := fixture.MakeKustomization("web").DrivenBy("shop", "VERSION").Obj()
	consumer.Spec.SourceRef.Namespace, consumer.Spec.SourceRef.Name = elsewhere, "web"
	s.Add(consumer)
	source := fixture.MakeRepository("web").Obj()
	source.Namespace = elsewhere
	woken := s.reconciler.concerned().rolloutsOfSource(s.Ctx, source)
	s.Expect(woken).To(HaveLen(1))
	s.Expect(woken[0].NamespacedName).To(Equal(s.Key("shop")))
}

func TestReadySaysThatAPolicyNamesWhatItDoesNotAdmit(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.setRange(">=2.0.0")
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition)).To(Equal(condition{metav1.ConditionFalse, v1alpha1.NoReleasesReason,
		"ImagePolicy shop still names 1.0.0, which its range or filter does not admit: wait for Flux to look again, or correct them"}))
}

// A rehearsal promotes without targets. They are annotated later.
func TestReadyIsAboutTheTargetsOfNow(t *testing.T) {
	s := open(t, fixture.MakeScan("shop").Found("1.0.0").Obj(), fixture.MakePolicy("shop").Latest("1.0.0").Obj(), fixture.MakeRollout("shop").Obj())
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Message).To(Equal("1.0.0: no Flux object is annotated with this Rollout: nothing to deploy"))

	s.Add(fixture.MakeRepository("shop").DrivenBy("shop").Obj(), fixture.MakeKustomization("shop").Obj())
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Message).To(Equal(
		"1.0.0: succeeded before its targets were annotated; waiting for Flux to apply 1.0.0 to 2 targets"))
	s.deploy("shop")
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Message).To(Equal("1.0.0: applied; its targets were annotated after it had succeeded"))
}

// What holds the first release is said, and not that there is none.
func TestReadySaysWhatHoldsTheFirstRelease(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").Environment("nowhere"), "1.0.0")...)
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition)).To(Equal(condition{metav1.ConditionFalse, environmentsv1.UpstreamUnknownReason,
		"1.0.0 waits: Environment nowhere, which spec.environmentRef names, does not exist or names another Rollout: create it, or correct one of the two"}))

	s = open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0", fixture.MakeGate("old", "shop").Allow("0.9.0").Obj(), fixture.MakeGate("closed", "shop").Closed().Obj())...)
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition)).To(Equal(condition{metav1.ConditionFalse, v1alpha1.NoAllowedVersionsReason,
		"1.0.0 waits: RolloutGate old does not allow 1.0.0"}))
}
