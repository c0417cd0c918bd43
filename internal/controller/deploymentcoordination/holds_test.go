// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// A pause without the annotation looks like a pause by the controller.
func TestPauseOfTheActiveDeploymentWithoutAnnotationIsUndone(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(*testEnv){
		"half-way": func(*testEnv) {},
		"with Pods that are not ready": func(s *testEnv) {
			s.say("a", func(st *appsv1.DeploymentStatus) { st.Replicas, st.UpdatedReplicas, st.AvailableReplicas = 1, 1, 0 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := three(t, minReady(60))
			s.edit("a", version("2"))
			s.edit("b", version("2"))
			s.rest()
			s.begins("a")
			at(s)
			s.rest()
			s.reported()
			s.edit("a", paused(true))
			s.observes("a")
			s.rest()
			s.stays("a")
			s.Expect(s.reported()).To(ContainElement(coordinationv1.DeploymentUnpausedEvent))
			s.Expect(s.state("shop", "a").LastRolloutFinished).To(BeNil())
			s.Expect(s.rest()).NotTo(BeNumerically("~", 5*time.Second, 4*time.Second), "nothing is polled")
		})
	}
}

func TestAnnotationOfAUserPausesTheActiveDeployment(t *testing.T) {
	s := three(t)
	s.edit("a", version("2"))
	s.edit("b", version("2"))
	s.rest()
	s.begins("a")
	s.rest()
	s.edit("a", userHeld(true))
	s.rest()
	s.observes("a")
	s.Expect(s.rest()).To(BeZero())
	s.Expect(s.unpaused()).To(BeEmpty(), "it is paused, and nobody else begins")
	s.Expect(s.active("shop")).To(Equal("a"))
	s.Expect(s.condition("shop", coordinationv1.ReadyCondition)).To(And(
		HavePrefix("False "+coordinationv1.ActiveDeploymentHeldReason), ContainSubstring(s.Namespace+"/a")))

	s.edit("a", userHeld(false))
	s.rest()
	s.stays("a")
	s.finishes("a")
	s.rest()
	s.stays("b")
}

func TestAnnotationOfAUserKeepsAWaitingDeploymentPaused(t *testing.T) {
	s := three(t)
	s.edit("a", version("2"), userHeld(true))
	s.edit("b", version("2"))
	s.rest()
	s.stays("b")
	s.Expect(s.pending("shop")).To(Equal([]string{"b"}))
	s.finishes("b")
	s.rest()
	s.Expect(s.active("shop")).To(BeEmpty())
	s.Expect(s.unpaused()).To(BeEmpty())

	s.edit("a", userHeld(false))
	s.rest()
	s.stays("a")
}

// Only the value "true" pauses.
func TestAnotherValueOfTheAnnotationHoldsNothing(t *testing.T) {
	s := three(t)
	s.edit("a", version("2"), annotated(coordinationv1.RolloutPausedAnnotation, "false"))
	s.rest()
	s.stays("a")
}
