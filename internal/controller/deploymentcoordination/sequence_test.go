// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// Users of the first implementation create Deployments like this: paused, with no
// annotation.
func TestDeploymentsThatWereCreatedPausedRollOutOneAfterTheOther(t *testing.T) {
	s := openStreet(t)
	s.deploy([]string{"c", "a", "b"}, paused(true), replicas(2))
	seen := s.observe()
	s.coordinate("shop")
	s.play()

	s.idles("shop", "a", "b", "c")
	s.Expect(seen.took()).To(Equal([]string{"a", "b", "c"}))
	s.Expect(seen.atOnce()).To(HaveLen(1))
	for _, name := range []string{"a", "b", "c"} {
		s.Expect(s.deployment(name).Spec.Paused).To(BeTrue(), "nothing is left to do for %s", name)
		s.Expect(s.versions(name)).To(Equal(map[string]int{"1": 2}))
	}

	s.edit([]string{"c", "b"}, version("2"))
	s.idles("shop", "a", "b", "c")
	s.Expect(seen.took()).To(HaveLen(5), "only those that changed take turns")
	s.Expect(seen.took()[3:]).To(ConsistOf("b", "c"))
	s.Expect(seen.atOnce()).To(HaveLen(1))
	s.Expect(s.versions("a")).To(Equal(map[string]int{"1": 2}))
	s.Expect(s.versions("c")).To(Equal(map[string]int{"2": 2}))
}

func TestEveryoneOfTenRollsOutAndNoTwoAtOnce(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]coordinationv1.IdlePolicy{"paused while idle": coordinationv1.IdlePause, "running while idle": coordinationv1.IdleResume} {
		t.Run(name, func(t *testing.T) {
			s := openStreet(t)
			var members []string
			for i := range 10 {
				members = append(members, fmt.Sprintf("m%d", i))
			}
			s.deploy(members, paused(true))
			seen := s.observe()
			s.coordinate("shop", func(c *coordinationv1.DeploymentCoordination) { c.Spec.IdlePolicy = policy })
			s.play()
			s.idles("shop", members...)
			s.Expect(seen.took()).To(Equal(members))
			s.Expect(seen.atOnce()).To(HaveLen(1))
		})
	}
}

// In a wave under the policy Resume the members are unpaused when their templates change,
// so without admission the controller has to pause all but one. A Deployment that is
// paused before Kubernetes begins keeps its old Pods.
func TestUnderResumeAllButOneAreStoppedWhenTheirTemplatesChange(t *testing.T) {
	s := openStreet(t)
	members := []string{"a", "b", "c"}
	s.deploy(members, paused(true))
	s.coordinate("shop", resume)
	s.play()
	s.idles("shop", members...)
	stuck, fix := s.stuck()
	s.edit(members, version(stuck))
	s.Eventually(func() int {
		running := 0
		for _, name := range members {
			if !s.deployment(name).Spec.Paused {
				running++
			}
		}
		return running
	}).Should(Equal(1), func() string { return s.describe("shop") })
	fix()
	s.idles("shop", members...)
	for _, name := range members {
		// The status reports all as idle before the paused ones are unpaused.
		s.Eventually(func() bool { return s.deployment(name).Spec.Paused }).Should(BeFalse())
		s.Expect(s.versions(name)).To(Equal(map[string]int{stuck: 1}))
	}
}

func TestDeploymentThatIsCreatedWhileAnotherRollsIsHeld(t *testing.T) {
	s := openStreet(t)
	stuck, fix := s.stuck()
	s.deploy([]string{"a"}, paused(true), version(stuck))
	s.coordinate("shop")
	s.play()
	s.activates("shop", "a")
	s.deploy([]string{"b"})
	s.Eventually(func() bool { return s.deployment("b").Spec.Paused }).Should(BeTrue())
	s.Eventually(func() []string { return s.coordination("shop").Status.Deployments }).Should(Equal(s.keys([]string{"a", "b"})))
	s.Expect(s.coordination("shop").Status.ActiveDeployment).To(HaveSuffix("/a"))
	fix()
	s.idles("shop", "a", "b")
	s.Expect(s.versions("b")).To(Equal(map[string]int{"1": 1}))
}

func TestMinReadySecondsReallyPass(t *testing.T) {
	s := openStreet(t)
	s.deploy([]string{"a", "b"}, paused(true))
	s.coordinate("shop", minReady(3))
	s.play()
	s.Eventually(func(g Gomega) { // they bake, and the status reports it
		c := s.coordination("shop")
		g.Expect(c.Status.DeploymentStates).To(HaveLen(2))
		g.Expect(c.Status.DeploymentStates[0].LastRolloutFinished).NotTo(BeNil())
		g.Expect(c.Status.ActiveDeployment).To(HaveSuffix("/a"))
		g.Expect(conditionText(c, coordinationv1.ProgressingCondition)).To(HavePrefix("True DeploymentRollingOut"))
	}).Should(Succeed())
	s.idles("shop", "a", "b")
	states := s.coordination("shop").Status.DeploymentStates
	s.Expect(states[1].LastRolloutStarted.Sub(states[0].LastRolloutFinished.Time)).To(BeNumerically(">=", 3*time.Second))
}

// The status is up to date at any time, also during a rollout and a bake.
func TestMemberThatComesDuringARolloutOrABakeShowsAtOnce(t *testing.T) {
	s := openStreet(t)
	stuck, fix := s.stuck()
	s.deploy([]string{"a"}, paused(true), version(stuck))
	s.coordinate("shop", minReady(3600))
	s.play()
	s.activates("shop", "a")
	s.deploy([]string{"b"}, paused(true))
	s.Eventually(func() []string { return s.coordination("shop").Status.Deployments }).Should(Equal(s.keys([]string{"a", "b"})))
	fix()
	s.Eventually(func() *metav1.Time { return s.coordination("shop").Status.DeploymentStates[0].ReadySince }).ShouldNot(BeNil())
	s.deploy([]string{"c"}, paused(true))
	s.Eventually(func() []string { return s.coordination("shop").Status.Deployments }).Should(Equal(s.keys([]string{"a", "b", "c"})))
	s.edit([]string{"b"}, version("2"))
	s.Eventually(func() int64 { return s.coordination("shop").Status.DeploymentStates[1].Generation }).
		Should(Equal(s.deployment("b").Generation), "who changes a Deployment can see that it was noticed")
	s.Expect(s.coordination("shop").Status.ActiveDeployment).To(HaveSuffix("/a"))
}

// No other event could trigger the controller.
func TestDeletionOfTheActiveDeploymentWakesTheController(t *testing.T) {
	s := openStreet(t)
	stuck, _ := s.stuck()
	s.deploy([]string{"a"}, paused(true), version(stuck))
	s.deploy([]string{"b"}, paused(true))
	s.coordinate("shop")
	s.play()
	s.activates("shop", "a")
	s.Expect(s.Delete(s.Ctx, deployment(s.Namespace, "a"))).To(Succeed())
	s.idles("shop", "b")
	s.awaitEvents("shop", "Normal "+coordinationv1.ActiveDeploymentClearedEvent, 2) // and when b is done
}

func TestCoordinationThatIsDeletedUnpausesAll(t *testing.T) {
	t.Parallel()
	for name, absent := range map[string]bool{"while the controller runs": false, "while it does not": true} {
		t.Run(name, func(t *testing.T) {
			s := openStreet(t)
			s.deploy([]string{"a", "b"}, paused(true))
			s.deploy([]string{"theirs"}, paused(true), labelled("other"))
			s.coordinate("shop")
			stop := s.play()
			s.idles("shop", "a", "b")
			s.edit([]string{"b"}, userHeld(true))
			if absent {
				stop()
			}
			s.Expect(s.Delete(s.Ctx, coordination(s.Namespace, "shop"))).To(Succeed())
			if absent {
				s.play()
			}
			s.Eventually(func() []string { return s.held() }).Should(BeEmpty())
			s.Expect(s.unpaused()).To(Equal([]string{"a"}), "a user holds b, and theirs was never ours")
		})
	}
}

func (s *street) list() []appsv1.Deployment {
	list := &appsv1.DeploymentList{}
	s.Expect(s.List(s.Ctx, list, client.InNamespace(s.Namespace))).To(Succeed())
	return list.Items
}

func (s *street) unpaused() []string {
	var names []string
	for _, d := range s.list() {
		if !d.Spec.Paused {
			names = append(names, d.Name)
		}
	}
	slices.Sort(names)
	return names
}

// held returns the Deployments that name a coordination in held-by.
func (s *street) held() []string {
	var names []string
	for _, d := range s.list() {
		if d.Annotations[coordinationv1.HeldByAnnotation] != "" {
			names = append(names, d.Name)
		}
	}
	return names
}

// While the controller is stopped, Kubernetes carries out every change.
func TestDeploymentsComeAndGoWithoutTheController(t *testing.T) {
	s := openStreet(t)
	s.deploy([]string{"a", "b"}, paused(true))
	s.coordinate("shop")
	stop := s.play()
	s.idles("shop", "a", "b")
	stop()

	s.deploy([]string{"c"})
	s.Eventually(func() map[string]int { return s.versions("c") }).Should(Equal(map[string]int{"1": 1}))
	s.scaled("a", 3)
	s.Eventually(func() map[string]int { return s.versions("a") }).Should(Equal(map[string]int{"1": 3}))
	s.Expect(s.Delete(s.Ctx, deployment(s.Namespace, "b"))).To(Succeed())
	s.edit([]string{"a"}, version("2"))

	s.play()
	s.idles("shop", "a", "c")
	s.Expect(s.versions("a")).To(Equal(map[string]int{"2": 3}))
}
