// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// Only a new template makes a Deployment wait for a turn.
func TestTurnIsOnlyForANewTemplate(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(*street){
		"a scale": func(s *street) {
			s.scaled("a", 5)
			s.Eventually(func() map[string]int { return s.versions("a") }).Should(Equal(map[string]int{"1": 5}))
		},
		"a scale by an edit": func(s *street) {
			s.edit([]string{"a"}, replicas(1))
			s.Eventually(func() map[string]int { return s.versions("a") }).Should(Equal(map[string]int{"1": 1}))
		},
		"a Pod that is not ready for a while": func(s *street) {
			s.sayReady("a", corev1.ConditionFalse)
			s.Eventually(func() int32 { return s.deployment("a").Status.UnavailableReplicas }).Should(BeNumerically(">", 0))
			s.sayReady("a", corev1.ConditionTrue)
			s.Eventually(func() int32 { return s.deployment("a").Status.UnavailableReplicas }).Should(BeZero())
		},
		"a Pod that is lost": func(s *street) {
			s.Expect(s.Delete(s.Ctx, s.pod("a"))).To(Succeed())
			s.Eventually(func() map[string]int { return s.versions("a") }).Should(Equal(map[string]int{"1": 2}))
		},
		"a label": func(s *street) { s.edit([]string{"a"}, labelled("shop", "other")) },
	} {
		t.Run(name, func(t *testing.T) {
			for policy, edit := range map[string]func(*coordinationv1.DeploymentCoordination){"Pause": minReady(0), "Resume": resume} {
				s := openStreet(t)
				s.deploy([]string{"a", "b"}, paused(true), replicas(2))
				s.coordinate("shop", edit)
				s.play()
				s.idles("shop", "a", "b")
				before := s.coordination("shop")

				happens(s)
				s.idles("shop", "a", "b")
				after := s.coordination("shop")
				for i := range after.Status.DeploymentStates {
					s.Expect(after.Status.DeploymentStates[i].LastRolloutStarted).
						To(Equal(before.Status.DeploymentStates[i].LastRolloutStarted), "under %s", policy)
				}
				s.awaitEvents("shop", "Normal "+coordinationv1.DeploymentActivatedEvent, 2)
			}
		})
	}
}

func count(all []string, wanted string) int {
	n := 0
	for _, one := range all {
		if one == wanted {
			n++
		}
	}
	return n
}

func (s *street) pod(of string) *corev1.Pod {
	pods := &corev1.PodList{}
	s.Expect(s.List(s.Ctx, pods, client.InNamespace(s.Namespace), client.MatchingLabels{"app": of})).To(Succeed())
	s.Expect(pods.Items).NotTo(BeEmpty())
	return &pods.Items[0]
}

// sayReady simulates the readiness probe of one Pod.
func (s *street) sayReady(of string, is corev1.ConditionStatus) {
	pod := s.pod(of)
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			c.Status, c.LastTransitionTime = is, metav1.Now()
		}
	}
	s.Expect(s.Status().Update(s.Ctx, pod)).To(Succeed())
}

func TestScaleTogetherWithATemplateTakesATurn(t *testing.T) {
	s := openStreet(t)
	s.deploy([]string{"a", "b"}, paused(true))
	s.coordinate("shop")
	s.play()
	s.idles("shop", "a", "b")
	s.edit([]string{"b"}, version("2"), replicas(3))
	s.idles("shop", "a", "b")
	s.Expect(s.versions("b")).To(Equal(map[string]int{"2": 3}))
}

// The Deployment is unpaused, Kubernetes creates the empty ReplicaSet, and the rollout is
// done.
func TestTemplateWithoutReplicasIsRolledOutAtOnce(t *testing.T) {
	s := openStreet(t)
	s.deploy([]string{"a", "b"}, paused(true))
	s.coordinate("shop")
	s.play()
	s.idles("shop", "a", "b")
	s.edit([]string{"a"}, replicas(0))
	s.idles("shop", "a", "b")
	s.edit([]string{"a"}, version("2"))
	s.idles("shop", "a", "b")
	s.awaitEvents("shop", "Normal "+coordinationv1.DeploymentActivatedEvent, 3) // one for each, and one for this rollout
	started := s.coordination("shop").Status.DeploymentStates[0].LastRolloutStarted

	s.scaled("a", 2)
	s.Eventually(func() map[string]int { return s.versions("a") }).Should(Equal(map[string]int{"2": 2}), "only new Pods appear")
	s.idles("shop", "a", "b")
	s.Expect(s.coordination("shop").Status.DeploymentStates[0].LastRolloutStarted).To(Equal(started))
}

// In the meantime the old ReplicaSet is scaled, to have the right capacity.
func TestAutoscalerOfOneThatWaitsDoesNotTakeTheTurn(t *testing.T) {
	s := openStreet(t)
	stuck, _ := s.stuck()
	s.deploy([]string{"a", "b"}, paused(true))
	s.coordinate("shop")
	s.play()
	s.idles("shop", "a", "b")
	s.edit([]string{"a"}, version(stuck))
	s.activates("shop", "a")
	s.edit([]string{"b"}, version("2"))
	s.scaled("b", 4)
	s.Eventually(func() map[string]int { return s.versions("b") }).Should(Equal(map[string]int{"1": 4}))
	s.Expect(s.coordination("shop").Status.ActiveDeployment).To(HaveSuffix("/a"))
}

// Until the new Pods are available, Kubernetes reports the Deployment as not available.
func TestAutoscalerOfOneThatBakesDoesNotTouchItsClock(t *testing.T) {
	s := openStreet(t)
	s.deploy([]string{"a", "b"}, paused(true))
	s.coordinate("shop", minReady(3600))
	s.play()
	ready := func() *metav1.Time { return s.coordination("shop").Status.DeploymentStates[0].ReadySince }
	s.Eventually(func() []string { return s.coordination("shop").Status.Deployments }).Should(HaveLen(2))
	s.Eventually(ready).ShouldNot(BeNil())
	since := ready()
	s.scaled("a", 3)
	s.Eventually(func() int32 { return s.deployment("a").Status.AvailableReplicas }).Should(Equal(int32(3)))
	s.Eventually(func() int64 { return s.coordination("shop").Status.DeploymentStates[0].Generation }).Should(Equal(s.deployment("a").Generation))
	s.Eventually(ready).Should(Equal(since))
	s.Expect(s.coordination("shop").Status.ActiveDeployment).To(HaveSuffix("/a"))
}
