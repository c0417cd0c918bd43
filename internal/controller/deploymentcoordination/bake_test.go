// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// baking opens an env in which a has just been rolled out and bakes for an hour, and b
// waits. All have been available for a day.
func baking(t *testing.T) *testEnv {
	t.Helper()
	s := three(t, minReady(3600))
	s.pass(24 * time.Hour)
	s.edit("a", version("2"), replicas(2))
	s.edit("b", version("2"))
	s.rest()
	s.Expect(s.active("shop")).To(Equal("a"))
	s.begins("a")
	s.rest()
	s.pass(10 * time.Minute)
	s.finishes("a")
	s.Expect(s.rest()).To(Equal(time.Hour))
	return s
}

// stays verifies that a Deployment keeps the turn: the next one has not begun.
func (s *testEnv) stays(name string) {
	s.Expect(s.active("shop")).To(Equal(name))
	s.Expect(s.unpaused()).To(Equal([]string{name}))
}

func TestNextWaitsForTheWholeOfMinReadySeconds(t *testing.T) {
	s := baking(t)
	s.Expect(conditionOf(s.deployment("a"), appsv1.DeploymentAvailable).LastTransitionTime.Time).
		To(BeTemporally("<", s.Clock.Now().Add(-24*time.Hour)), "it never was unavailable")
	s.pass(time.Hour - time.Second)
	s.Expect(s.rest()).To(Equal(time.Second))
	s.stays("a")

	s.reported()
	s.pass(time.Second)
	s.rest()
	s.stays("b")
	s.Expect(s.reported()).To(Equal([]string{
		coordinationv1.ActiveDeploymentReadyEvent, coordinationv1.ActiveDeploymentChangedEvent,
		coordinationv1.DeploymentActivatedEvent, coordinationv1.DeploymentPausedEvent, coordinationv1.DeploymentUnpausedEvent,
	}))
}

// The example of a status in the documentation shows this moment.
func TestBakingDeploymentIsActiveAndFinishedAndNothingOfItIsPending(t *testing.T) {
	s := baking(t)
	finished := s.Clock.Now()
	s.pass(time.Minute)
	s.rest()
	c := s.coordination("shop")
	s.Expect(c.Status.ActiveDeployment).To(Equal(s.Namespace + "/a"))
	a := s.state("shop", "a")
	s.Expect(a.HasPendingChanges).To(BeFalse())
	s.Expect(a.LastRolloutFinished.Time).To(BeTemporally("==", finished))
	s.Expect(a.ReadySince.Time).To(BeTemporally("==", finished))
	s.Expect(a.LastRolloutStarted.Time).To(BeTemporally("==", finished.Add(-10*time.Minute)))
	s.Expect(a.Generation).To(Equal(s.deployment("a").Generation))
	s.Expect(s.pending("shop")).To(Equal([]string{"b"}))
	s.Expect(conditionText(c, coordinationv1.ReadyCondition)).To(HavePrefix("False DeploymentsInProgress"))
	s.Expect(conditionText(c, coordinationv1.ProgressingCondition)).To(HavePrefix("True DeploymentRollingOut"))
}

func TestClockOfABakeSurvivesARestart(t *testing.T) {
	s := baking(t)
	s.pass(40 * time.Minute)
	s.restart()
	s.Expect(s.rest()).To(Equal(20 * time.Minute))
	s.pass(20 * time.Minute)
	s.rest()
	s.stays("b")
}

func TestClockOfABakeIgnoresAScale(t *testing.T) {
	for name, to := range map[string]int32{"up": 5, "down": 1} {
		t.Run(name, func(t *testing.T) {
			s := baking(t)
			s.pass(40 * time.Minute)
			s.edit("a", replicas(to))
			s.Expect(s.rest()).To(Equal(10*time.Minute), "it is waited for Pods, until they have been missing for too long")
			s.finishes("a")
			s.Expect(s.rest()).To(Equal(20 * time.Minute))
			s.pass(20 * time.Minute)
			s.rest()
			s.stays("b")
		})
	}
}

func TestBakeBeginsAgain(t *testing.T) {
	for name, happens := range map[string]func(*testEnv){
		"when the Deployment is not available in between": func(s *testEnv) {
			s.say("a", func(st *appsv1.DeploymentStatus) {
				st.AvailableReplicas, st.UnavailableReplicas = 0, 2
				s.setAvailable(st, corev1.ConditionFalse)
			})
			s.rest()
			s.stays("a")
			s.pass(2 * time.Hour)
			s.rest()
			s.stays("a")
			s.finishes("a")
		},
		"with a new template, if nobody else waits": func(s *testEnv) {
			s.edit("b", version("1"))
			s.edit("a", version("3"))
			s.rest()
			s.begins("a")
			s.rest()
			s.Expect(s.pending("shop")).To(Equal([]string{"a"}))
			s.Expect(s.state("shop", "a").LastRolloutStarted.Time).To(BeTemporally("==", s.Clock.Now()))
			s.edit("b", version("2"))
			s.pass(2 * time.Hour)
			s.rest()
			s.stays("a")
			s.finishes("a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := baking(t)
			s.pass(40 * time.Minute)
			happens(s)
			s.Expect(s.rest()).To(Equal(time.Hour))
			s.stays("a")
			s.pass(time.Hour)
			s.rest()
			s.stays("b")
		})
	}
}

// A Deployment that changes more often than it bakes does not keep the turn for ever.
func TestNewTemplateDuringTheBakeWaitsForThoseThatHadNoTurn(t *testing.T) {
	s := baking(t)
	s.pass(40 * time.Minute)
	s.edit("a", version("3"))
	s.rest()
	s.stays("b")
	s.Expect(s.pending("shop")).To(Equal([]string{"a", "b"}))
	s.begins("b")
	s.finishes("b")
	s.rest()
	s.pass(time.Hour)
	s.rest()
	s.stays("a")
}

// The API server stores what was ready: a bakes with version 2, and goes back before b has
// begun.
func TestWayBackDoesNotBake(t *testing.T) {
	s := baking(t)
	s.pass(time.Hour)
	s.rest()
	s.stays("b")
	s.edit("b", version("1"))
	s.edit("a", version("1"))
	s.finishes("b")
	s.rest()
	s.stays("a")
	s.begins("a")
	s.restart()
	s.rest()
	s.stays("a")
	s.finishes("a")
	s.rest()
	s.Expect(s.active("shop")).To(BeEmpty())
	s.Expect(s.state("shop", "a").ReadyTemplates).To(HaveLen(1), "version 2 was abandoned")
}

// As many replicas as wanted are available, but some of them are old.
func TestBakeDoesNotBeginBeforeAllReplicasAreUpdated(t *testing.T) {
	s := three(t, minReady(60))
	s.edit("a", version("2"), replicas(3))
	s.edit("b", version("2"))
	s.rest()
	s.begins("a")
	s.say("a", func(st *appsv1.DeploymentStatus) {
		st.Replicas, st.UpdatedReplicas, st.ReadyReplicas, st.AvailableReplicas = 4, 2, 4, 4
	})
	s.rest()
	s.pass(time.Hour)
	s.rest()
	s.stays("a")
	s.Expect(s.state("shop", "a").ReadySince).To(BeNil())
	s.finishes("a")
	s.Expect(s.rest()).To(Equal(time.Minute))
}
