// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// The documentation recommends kubectl get events --field-selector
// involvedObject.name=NAME --sort-by=.lastTimestamp.
func TestEventsShowEachStepOfARollout(t *testing.T) {
	s := openStreet(t)
	s.deploy([]string{"a", "b"}, paused(true))
	s.coordinate("shop")
	s.play()
	s.idles("shop", "a", "b")
	s.Eventually(func() []string { return s.emitted("shop") }).Should(Equal([]string{
		"Normal " + coordinationv1.DeploymentActivatedEvent,
		"Normal " + coordinationv1.DeploymentUnpausedEvent,
		"Normal " + coordinationv1.ActiveDeploymentReadyEvent,
		"Normal " + coordinationv1.ActiveDeploymentChangedEvent,
		"Normal " + coordinationv1.DeploymentActivatedEvent,
		"Normal " + coordinationv1.DeploymentPausedEvent,
		"Normal " + coordinationv1.DeploymentUnpausedEvent,
		"Normal " + coordinationv1.ActiveDeploymentReadyEvent,
		"Normal " + coordinationv1.ActiveDeploymentClearedEvent,
		"Normal " + coordinationv1.DeploymentPausedEvent,
	}))
}

// Kubernetes itself gives the rollout up, after its own deadline.
func TestFailureInKubernetesBlocksAndAFixGoesThrough(t *testing.T) {
	t.Parallel()
	for name, fix := range map[string]string{"the next template": "3", "the template before it": "1"} {
		t.Run(name, func(t *testing.T) {
			s := openStreet(t)
			stuck, _ := s.stuck()
			s.deploy([]string{"a", "b"}, paused(true), deadline(2), replicas(2))
			s.coordinate("shop")
			s.play()
			s.idles("shop", "a", "b")
			s.edit([]string{"a"}, version(stuck))
			s.activates("shop", "a")
			s.edit([]string{"b"}, version("2"))
			s.Eventually(func() string { return conditionText(s.coordination("shop"), coordinationv1.StalledCondition) }).
				Should(And(HavePrefix("True "+coordinationv1.RolloutFailedReason), ContainSubstring(s.Namespace+"/a"), ContainSubstring("progressing")))
			c := s.coordination("shop")
			s.Expect(unlawful(c)).To(BeEmpty())
			s.Expect(c.Status.ActiveDeployment).To(HaveSuffix("/a"))
			s.Expect(s.deployment("b").Spec.Paused).To(BeTrue())
			s.Expect(s.versions("b")).To(Equal(map[string]int{"1": 2}))

			s.edit([]string{"a"}, version(fix))
			s.idles("shop", "a", "b")
			s.Eventually(func() map[string]int { return s.versions("a") }).Should(Equal(map[string]int{fix: 2}))
			s.Eventually(func() map[string]int { return s.versions("b") }).Should(Equal(map[string]int{"2": 2}))
		})
	}
}

// The annotation rollout-paused stops Kubernetes half-way, and the rollout continues
// afterwards.
func TestUserStopsARolloutHalfWay(t *testing.T) {
	s := openStreet(t)
	stuck, fix := s.stuck()
	s.deploy([]string{"a", "b"}, paused(true), replicas(2))
	s.coordinate("shop")
	s.play()
	s.idles("shop", "a", "b")
	s.edit([]string{"a"}, version(stuck))
	s.activates("shop", "a")
	s.Eventually(func() map[string]int { return s.versions("a") }).Should(HaveKey(stuck))
	s.edit([]string{"a"}, userHeld(true))
	s.edit([]string{"b"}, version("2"))
	s.Eventually(func() string { return conditionText(s.coordination("shop"), coordinationv1.ReadyCondition) }).
		Should(HavePrefix("False " + coordinationv1.ActiveDeploymentHeldReason))
	s.Eventually(func() bool { return s.deployment("a").Spec.Paused }).Should(BeTrue())
	fix()
	s.Eventually(func() int64 { d := s.deployment("a"); return d.Generation - d.Status.ObservedGeneration }).Should(BeZero())
	s.Expect(s.versions("a")).To(HaveKey("1"), "the old Pods are still there")
	s.Expect(s.versions("b")).To(Equal(map[string]int{"1": 2}))

	s.edit([]string{"a"}, userHeld(false))
	s.idles("shop", "a", "b")
	s.Expect(s.versions("a")).To(Equal(map[string]int{stuck: 2}))
	s.Expect(s.versions("b")).To(Equal(map[string]int{"2": 2}))
}

// Two coordinations share b.
func TestOverlappingCoordinationsRollOneDeploymentAtOnce(t *testing.T) {
	s := openStreet(t)
	s.deploy([]string{"a"}, paused(true), labelled("one"))
	s.deploy([]string{"b"}, paused(true), labelled("one", "two"))
	s.deploy([]string{"c"}, paused(true), labelled("two"))
	seen := s.observe()
	s.coordinate("one")
	s.coordinate("two")
	s.play()
	s.idles("one", "a", "b")
	s.idles("two", "b", "c")
	s.Expect(seen.took()).To(Equal([]string{"a", "b", "c"}))
	s.Expect(seen.atOnce()).To(HaveLen(1))
}

func TestHoldModeIsTheControllerWithoutAdmission(t *testing.T) {
	s := openStreet(t)
	s.deploy([]string{"a"}, paused(true))
	s.coordinate("shop")
	s.play()
	s.idles("shop", "a")
	s.Expect(s.coordination("shop").Status.Conditions).To(ContainElement(And(
		HaveField("Type", coordinationv1.HoldModeCondition), HaveField("Status", metav1.ConditionFalse),
		HaveField("Reason", coordinationv1.ControllerOnlyReason))))
}
