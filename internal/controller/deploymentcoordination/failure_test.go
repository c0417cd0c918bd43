// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"math"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

const tooLong = `ReplicaSet "a-hash1" has timed out progressing.`

// failed opens an env in which the rollout of a has failed, and b waits.
func failed(t *testing.T) *testEnv {
	t.Helper()
	s := three(t)
	s.edit("a", version("2"))
	s.edit("b", version("2"))
	s.rest()
	s.begins("a")
	s.pass(10 * time.Minute)
	s.givesUp("a", tooLong)
	s.rest()
	return s
}

func TestFailedRolloutBlocksAndSaysSo(t *testing.T) {
	s := failed(t)
	s.stays("a")
	for kind, status := range map[string]string{
		coordinationv1.ReadyCondition: "False", coordinationv1.ProgressingCondition: "False",
		coordinationv1.DegradedCondition: "True", coordinationv1.StalledCondition: "True",
	} {
		s.Expect(s.condition("shop", kind)).To(And(
			HavePrefix(status+" "+coordinationv1.RolloutFailedReason+":"), ContainSubstring(s.Namespace+"/a"), ContainSubstring(strings.TrimSuffix(tooLong, "."))))
	}
	s.pass(time.Hour)
	s.Expect(s.rest()).To(BeZero(), "nothing changes with time")
	s.stays("a")
}

func TestFailureEnds(t *testing.T) {
	for name, ends := range map[string]func(*testEnv){
		"when the next template is rolled out": func(s *testEnv) {
			s.edit("a", version("3"))
			s.rest()
			s.stays("a")
			s.Expect(s.condition("shop", coordinationv1.StalledCondition)).To(BeEmpty(), "the new template has a chance")
			s.begins("a")
			s.finishes("a")
		},
		"when the template before it is restored": func(s *testEnv) {
			s.edit("a", version("1"))
			s.rest()
			s.finishes("a")
		},
		"by a success that comes late": func(s *testEnv) {
			s.finishes("a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := failed(t)
			s.pass(time.Minute)
			ends(s)
			s.rest()
			s.stays("b")
			s.Expect(s.condition("shop", coordinationv1.StalledCondition)).To(BeEmpty())
			s.Expect(s.condition("shop", coordinationv1.DegradedCondition)).To(HavePrefix("False NoErrors"))
			s.Expect(s.condition("shop", coordinationv1.ProgressingCondition)).To(HavePrefix("True DeploymentRollingOut"))
		})
	}
}

// Kubernetes never gives up a rollout that has been complete once.
func TestRolloutThatBreaksWhileItBakesBlocksAndSaysSo(t *testing.T) {
	s := baking(t)
	s.pass(20 * time.Second)
	s.say("a", func(st *appsv1.DeploymentStatus) {
		st.AvailableReplicas, st.UnavailableReplicas = 0, 2
		s.setAvailable(st, corev1.ConditionFalse)
	})
	s.Expect(s.rest()).To(Equal(10 * time.Minute))
	s.pass(10*time.Minute - time.Second)
	s.Expect(s.rest()).To(Equal(time.Second))
	s.Expect(s.condition("shop", coordinationv1.StalledCondition)).To(BeEmpty())
	s.pass(time.Second)
	s.Expect(s.rest()).To(BeZero())
	for _, kind := range []string{coordinationv1.StalledCondition, coordinationv1.DegradedCondition} {
		s.Expect(s.condition("shop", kind)).To(And(HavePrefix("True RolloutFailed:"), ContainSubstring("0 of 2 replicas")))
	}
	s.stays("a")

	s.finishes("a")
	s.Expect(s.rest()).To(Equal(time.Hour), "the bake begins again")
	s.Expect(s.condition("shop", coordinationv1.StalledCondition)).To(BeEmpty())
	s.Expect(s.condition("shop", coordinationv1.DegradedCondition)).To(HavePrefix("False NoErrors"))
}

// Kubernetes keeps a timeout during a pause, and does not re-evaluate it before the
// Deployment progresses.
func TestTimeoutThatIsOlderThanTheRolloutIsNoFailureBeforeTheDeadline(t *testing.T) {
	s := three(t)
	s.givesUp("a", "of the year before last")
	s.pass(time.Hour)
	s.edit("a", version("2"), deadline(600))
	s.edit("b", version("2"))
	s.Expect(s.rest()).To(Equal(10*time.Minute), "at the deadline it is looked at again")
	s.stays("a")
	s.Expect(s.condition("shop", coordinationv1.DegradedCondition)).To(HavePrefix("False NoErrors"))

	s.pass(10 * time.Minute)
	s.rest()
	s.Expect(s.condition("shop", coordinationv1.StalledCondition)).To(HavePrefix("True RolloutFailed"), "it still stands")
	s.stays("a")
}

func TestNothingFailsWithoutADeadline(t *testing.T) {
	s := three(t)
	s.edit("a", version("2"), deadline(math.MaxInt32))
	s.edit("b", version("2"))
	s.rest()
	s.begins("a")
	s.say("a", func(st *appsv1.DeploymentStatus) { st.Conditions = nil })
	s.Expect(s.rest()).To(BeZero())
	s.pass(1000 * time.Hour)
	s.rest()
	s.stays("a")
	s.Expect(s.condition("shop", coordinationv1.DegradedCondition)).To(HavePrefix("False NoErrors"))
}
