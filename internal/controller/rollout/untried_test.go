// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// fluxWaits simulates a kustomize-controller that has not tried to apply what was pulled.
func (s *testEnv) fluxWaits(reason, message string) {
	s.fluxPulls()
	s.ChangeStatus(&kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, func(o client.Object) {
		k := o.(*kustomizev1.Kustomization)
		k.Status.LastHandledReconcileAt = k.Annotations[v1alpha1.ReconcileRequestAnnotation]
		fluxSays(&k.Status.Conditions, k.Generation, metav1.ConditionFalse, message)
		apimeta.FindStatusCondition(k.Status.Conditions, meta.ReadyCondition).Reason = reason
	})
}

const noDatabase = "dependency 'shop/database' not found"

func TestDependencyThatIsMissingIsNamedEverywhere(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").DeployTimeout(10*time.Minute), "1.0.0")...)
	s.rest("shop")
	s.fluxWaits(meta.DependencyNotReadyReason, noDatabase)
	s.rest("shop")
	const waiting = "waiting for Flux to apply 1.0.0 to 2 targets"
	s.Expect(s.rollout("shop").Status.Targets[0]).To(And(HaveField("State", v1alpha1.TargetPending),
		HaveField("Reason", v1alpha1.TargetDependencyNotReady), HaveField("Message", noDatabase)))
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.TargetsPendingReason, waiting + "; Kustomization shop: " + noDatabase}))
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Message).To(HaveSuffix("; Kustomization shop: " + noDatabase))

	s.Pass(10*time.Minute + time.Second)
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeFailed))
	const failed = "not applied and healthy within 10m0s: Kustomization "
	s.Expect(*s.rollout("shop").Status.History[0].BakeStatusMessage).To(Equal(failed + s.Namespace + "/shop: " + noDatabase))
	last := s.Events.Take()
	s.Expect(last[len(last)-1]).To(And(HaveField("Reason", v1alpha1.BakeTimeFailedReason), HaveField("Message", ContainSubstring(noDatabase))))
}

// Flux tries again and again, each time with other numbers, and hides the cause meanwhile.
func TestCauseThatStaysIsWrittenOnce(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").DeployTimeout(time.Hour), "1.0.0")...)
	s.rest("shop")
	s.fluxWaits(meta.ArtifactFailedReason, "stat /tmp/kustomization-123/deploy: no such file, retrying in 5s")
	s.rest("shop")
	before := s.rollout("shop").ResourceVersion
	for _, retry := range []string{"stat /tmp/kustomization-45/deploy: no such file, retrying in 10s", "stat /tmp/kustomization-6/deploy: no such file, retrying in 20s"} {
		s.ChangeStatus(&kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, func(o client.Object) {
			k := o.(*kustomizev1.Kustomization)
			fluxSays(&k.Status.Conditions, k.Generation, metav1.ConditionUnknown, "Reconciliation in progress")
		})
		s.rest("shop")
		s.fluxWaits(meta.ArtifactFailedReason, retry)
		s.rest("shop")
	}
	s.Expect(s.rollout("shop").ResourceVersion).To(Equal(before))

	s.deploy("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeSucceeded))
	s.Expect(s.rollout("shop").Status.Targets[0]).To(And(HaveField("State", v1alpha1.TargetApplied), HaveField("Reason", BeEmpty()), HaveField("Message", BeEmpty())))
}

// What a target has applied does not change because Flux waits for something later.
func TestDependencyThatFailsLaterChangesNothing(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	before := s.rollout("shop").ResourceVersion
	s.fluxWaits(meta.DependencyNotReadyReason, noDatabase)
	s.rest("shop")
	s.Expect(s.rollout("shop").ResourceVersion).To(Equal(before))
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Status).To(Equal(metav1.ConditionTrue))
}

func TestConsumerThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	doomed := fixture.MakeKustomization("shop").DrivenBy("shop", "VERSION").Obj()
	doomed.Finalizers = []string{kustomizev1.KustomizationFinalizer}
	s := open(t, fixture.MakeScan("shop").Found("1.0.0").Obj(), fixture.MakePolicy("shop").Latest("1.0.0").Obj(),
		fixture.MakeRepository("shop").DrivenBy("shop").Tag("0.0.1").Obj(), doomed, fixture.MakeRollout("shop").Obj())
	s.rest("shop")
	s.Remove(&kustomizev1.Kustomization{}, "shop")
	s.fluxPulls()
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.TargetsPendingReason, "waiting for Flux to apply 1.0.0 to 2 targets; Kustomization shop is being deleted"}))
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying))
	lost := HaveField("Reason", v1alpha1.ConsumerLostReason)
	s.Expect(s.Events.Take()).To(ContainElement(lost))

	s.Change(&kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, func(o client.Object) { o.SetFinalizers(nil) })
	s.rest("shop")
	s.Expect(s.Events.Take()).NotTo(ContainElement(lost), "it was said before")
}
