// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// turnsOf returns the Deployments that have a turn, by the names of the two fields.
func (s *testEnv) turnsOf(coordination string) (first string, all []string) {
	c := s.coordination(coordination)
	return c.Status.ActiveDeployment, c.Status.ActiveDeployments
}

func TestTwoMayRollOutAtATime(t *testing.T) {
	s := three(t, minReady(30), resume, atATime(intstr.FromString("67%")))
	for _, name := range []string{"a", "b", "c"} {
		s.edit(name, version("2"), paused(true))
	}
	s.rest()
	a, b, c := s.Namespace+"/a", s.Namespace+"/b", s.Namespace+"/c"
	first, all := s.turnsOf("shop")
	s.Expect(first).To(Equal(a))
	s.Expect(all).To(Equal([]string{a, b}))
	s.Expect(s.unpaused()).To(Equal([]string{"a", "b"}))

	// A restart, and a bake of its own for each turn.
	s.restart()
	s.finishes("b")
	s.rest()
	s.pass(31 * time.Second)
	s.rest()
	first, all = s.turnsOf("shop")
	s.Expect(first).To(Equal(a))
	s.Expect(all).To(Equal([]string{a, c}))
	s.Expect(s.unpaused()).To(Equal([]string{"a", "b", "c"}))
	s.Expect(s.condition("shop", coordinationv1.ReadyCondition)).To(And(ContainSubstring(a+" rolls out"), ContainSubstring(c+" rolls out")))

	s.finishes("a")
	s.finishes("c")
	s.rest()
	s.pass(31 * time.Second)
	s.rest()
	first, all = s.turnsOf("shop")
	s.Expect(first).To(BeEmpty())
	s.Expect(all).To(BeEmpty())
	s.Expect(s.condition("shop", coordinationv1.ReadyCondition)).To(HavePrefix("True AllDeploymentsReady"))
}

// Each of the writes of two turns may be the last one before a crash.
func TestCrashBetweenTwoUnpausesGivesNoThirdTurn(t *testing.T) {
	for last := range 3 {
		s := three(t, atATime(intstr.FromInt32(2)))
		for _, name := range []string{"a", "b", "c"} {
			s.edit(name, version("2"))
		}
		s.Wire.Fail = func(n int, _ string, _ client.Object) fixture.Fault {
			if n <= last {
				return fixture.Fault{}
			}
			return fixture.Fault{Err: fixture.ErrDead, Fatal: true}
		}
		_, _ = s.try(s.reconciler)
		s.Wire = &fixture.Wire{}
		s.restart()
		s.rest()
		s.Expect(s.unpaused()).To(Equal([]string{"a", "b"}), "the last write before the crash was number %d", last)
	}
}
