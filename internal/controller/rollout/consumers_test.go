// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// A consumer in another namespace wakes a Rollout when it appears and when it goes, and not
// whenever Flux reconciles it.
func TestConsumersOfOtherNamespacesWakeOnlyWhenTheyComeAndGo(t *testing.T) {
	consumer := func() *fixture.KustomizationBuilder {
		return fixture.MakeKustomization("shop").InNamespace("b").FromNamespace(fixture.Namespace)
	}
	chart := func() *fixture.HelmReleaseBuilder {
		return fixture.MakeHelmRelease("shop").InNamespace("b").FromNamespace(fixture.Namespace)
	}
	for name, tt := range map[string]struct {
		before, after client.Object
		want          bool
	}{
		"it applies something":           {consumer().Obj(), consumer().Applied("1.0.0").Ready().Obj(), false},
		"it is suspended":                {consumer().Obj(), consumer().Suspended().Obj(), false},
		"it is being deleted":            {consumer().Obj(), consumer().Deleting().Obj(), true},
		"it has another source":          {consumer().Obj(), consumer().From("OCIRepository", "cart").FromNamespace(fixture.Namespace).Obj(), true},
		"it has a source of its own":     {consumer().Obj(), consumer().From("OCIRepository", "shop").Obj(), true},
		"it begins to consume":           {consumer().From("GitRepository", "shop").Obj(), consumer().Obj(), true},
		"it never did":                   {fixture.MakeKustomization("a").Obj(), fixture.MakeKustomization("a").Applied("1.0.0").Obj(), false},
		"a HelmRelease deploys":          {chart().Obj(), chart().Deployed(fixture.Revision("1.0.0")).Obj(), false},
		"a HelmRelease is being deleted": {chart().Obj(), chart().Deleted().Obj(), true},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(consumptionChanged().Update(event.UpdateEvent{ObjectOld: tt.before, ObjectNew: tt.after})).To(Equal(tt.want))
		})
	}
}

func TestConsumerLeadsToTheRolloutOfItsSource(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	shop := []ctrl.Request{{NamespacedName: s.Key("shop")}}
	for name, tt := range map[string]struct {
		consumer client.Object
		refused  bool
		want     []ctrl.Request
	}{
		"of another namespace":             {consumer: fixture.MakeKustomization("shop").InNamespace("b").FromNamespace(s.Namespace).Obj(), want: shop},
		"a HelmRelease":                    {consumer: fixture.MakeHelmRelease("shop").InNamespace("b").FromNamespace(s.Namespace).Obj(), want: shop},
		"of its own namespace":             {consumer: fixture.MakeKustomization("shop").InNamespace(s.Namespace).Obj()},
		"of a source that does not exist":  {consumer: fixture.MakeKustomization("none").InNamespace("b").FromNamespace(s.Namespace).Obj()},
		"of a source of another kind":      {consumer: fixture.MakeKustomization("shop").InNamespace("b").From("GitRepository", "shop").FromNamespace(s.Namespace).Obj()},
		"where Flux must not refer to one": {consumer: fixture.MakeKustomization("shop").InNamespace("b").FromNamespace(s.Namespace).Obj(), refused: true},
	} {
		s.reconciler.NoCrossNamespaceRefs = tt.refused
		s.Expect(s.reconciler.concerned().rolloutsOfSourceElsewhere(s.Ctx, tt.consumer)).To(Equal(tt.want), name)
	}
}

const nothingApplies = "no Kustomization or HelmRelease in this namespace applies it, so it counts as applied once Flux has pulled it: " +
	"check the sourceRef or chartRef of what should apply it"

// unconsumed returns a Rollout and an OCIRepository that nothing applies.
func unconsumed(rollout *fixture.RolloutBuilder) []client.Object {
	return []client.Object{
		fixture.MakeScan("shop").Found("1.0.0").Obj(), fixture.MakePolicy("shop").Latest("1.0.0").Obj(),
		fixture.MakeRepository("shop").DrivenBy("shop").Tag("0.0.1").Obj(), rollout.Obj(),
	}
}

func TestRepositoryThatNothingAppliesIsOnlyPulled(t *testing.T) {
	s := open(t, unconsumed(fixture.MakeRollout("shop").BakeTime(time.Minute))...)
	s.deploy("shop")
	s.Pass(time.Minute)
	s.rest("shop")
	said := "OCIRepository shop: " + nothingApplies
	s.Expect(s.rollout("shop").Status.Targets[0]).To(And(HaveField("State", v1alpha1.TargetApplied),
		HaveField("Reason", v1alpha1.TargetNoConsumer), HaveField("Message", nothingApplies)))
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
		metav1.ConditionTrue, v1alpha1.TargetsAppliedReason, "1 target pulled 1.0.0; " + said}))
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition)).To(Equal(condition{
		metav1.ConditionTrue, v1alpha1.BakeTimePassedReason, "1.0.0: pulled for the bake time of 1m0s; " + said}))

	s.Add(fixture.MakeKustomization("shop").Obj())
	s.deploy("shop")
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition).Message).To(Equal("applied 1.0.0 to 2 targets"))
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Message).NotTo(ContainSubstring("applies it"))

	s.Events.Take()
	s.Remove(&kustomizev1.Kustomization{}, "shop")
	s.rest("shop")
	s.rest("shop")
	s.Expect(s.Events.Take()).To(ConsistOf(fixture.Event{
		On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.ConsumerLostReason,
		Message: "OCIRepository " + s.Namespace + "/shop has lost the last Kustomization or HelmRelease that applied it: " +
			"a release counts as applied once Flux has pulled it",
	}))
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Message).To(HaveSuffix(said))
}

// That nothing applies it is written with the result, not by itself.
func TestRepositoryThatNothingAppliesCostsNoWrite(t *testing.T) {
	s := open(t, unconsumed(fixture.MakeRollout("shop").BakeTime(time.Minute).SelectAllChecks())...)
	s.Add(fixture.MakeHealthCheck("web").Obj())
	s.rest("shop")
	before := s.rollout("shop").ResourceVersion
	s.fluxApplies()
	s.rest("shop")
	s.Expect(s.rollout("shop").ResourceVersion).To(Equal(before), "that all is pulled is progress")
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.rest("shop")
	s.Expect(*s.rollout("shop").Status.History[0].BakeStatusMessage).To(HavePrefix("pulled and healthy (1 HealthCheck); baking for 1m0s"))
}

// How a consumer in another namespace fares costs nothing.
func TestConsumerOfAnotherNamespaceIsNamedAndCausesNoWrite(t *testing.T) {
	s := open(t, unconsumed(fixture.MakeRollout("shop"))...)
	other := s.OpenNamespace(nil)
	consumer := fixture.MakeKustomization("shop").InNamespace(other).FromNamespace(s.Namespace).Obj()
	s.Expect(s.Create(s.Ctx, consumer)).To(Succeed())
	s.deploy("shop")
	s.Expect(s.rollout("shop").Status.Targets[0]).To(And(HaveField("Reason", v1alpha1.TargetConsumerElsewhere),
		HaveField("Message", HavePrefix("Kustomization "+other+"/shop applies it from another namespace, and is not waited for"))))

	before := s.rollout("shop").ResourceVersion
	fluxSays(&consumer.Status.Conditions, 1, metav1.ConditionFalse, "kustomization path not found")
	s.Expect(s.Status().Update(s.Ctx, consumer)).To(Succeed())
	s.rest("shop")
	s.Expect(s.rollout("shop").ResourceVersion).To(Equal(before))

	s.Expect(s.Delete(s.Ctx, consumer)).To(Succeed())
	s.rest("shop")
	s.Expect(s.rollout("shop").Status.Targets[0].Reason).To(Equal(v1alpha1.TargetNoConsumer))
}
