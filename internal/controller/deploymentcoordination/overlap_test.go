// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// overlapping opens an env with two coordinations: one selects a and b, and two selects
// b and c. Everything is rolled out.
func overlapping(t *testing.T, edits ...func(*coordinationv1.DeploymentCoordination)) *testEnv {
	t.Helper()
	s := open(t)
	s.deployed("a", labelled("one"))
	s.deployed("b", labelled("one", "two"))
	s.deployed("c", labelled("two"))
	s.coordinate("one", edits...)
	s.coordinate("two")
	s.rest()
	s.writes()
	s.reported()
	return s
}

func TestCoordinationsThatShareADeploymentHaveOneTurn(t *testing.T) {
	s := overlapping(t)
	for _, name := range []string{"a", "b", "c"} {
		s.edit(name, version("2"))
	}
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"a"}))
	s.Expect(s.active("one")).To(Equal("a"))
	s.Expect(s.active("two")).To(BeEmpty(), "a is none of its members")
	s.Expect(s.condition("two", coordinationv1.ReadyCondition)).To(And(
		HavePrefix("False "+coordinationv1.WaitingForCoordinationReason), ContainSubstring("one")))

	s.finishes("a")
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"b"}))
	s.Expect([]string{s.active("one"), s.active("two")}).To(Equal([]string{"b", "b"}), "whoever selects it carries its name")

	s.finishes("b")
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"c"}))
	s.Expect([]string{s.active("one"), s.active("two")}).To(Equal([]string{"", "c"}))
	s.Expect(s.condition("one", coordinationv1.ReadyCondition)).To(HavePrefix("True"), "nothing of its own is left to do")

	s.finishes("c")
	s.Expect(s.rest()).To(BeZero())
	s.Expect(s.unpaused()).To(BeEmpty())
}

func TestThreeCoordinationsInATriangleHaveOneTurn(t *testing.T) {
	s := open(t)
	s.deployed("a", labelled("one", "three"))
	s.deployed("b", labelled("one", "two"))
	s.deployed("c", labelled("two", "three"))
	for _, name := range []string{"one", "two", "three"} {
		s.coordinate(name)
	}
	s.rest()
	for _, name := range []string{"a", "b", "c"} {
		s.edit(name, version("2"))
	}
	for _, name := range []string{"a", "b", "c"} {
		s.rest()
		s.Expect(s.unpaused()).To(Equal([]string{name}))
		s.finishes(name)
	}
	s.rest()
	s.Expect(s.unpaused()).To(BeEmpty())
}

func TestCoordinationsThatShareNothingDoNotWaitForEachOther(t *testing.T) {
	s := open(t)
	s.deployed("a", labelled("one"))
	s.deployed("b", labelled("two"))
	s.coordinate("one")
	s.coordinate("two")
	s.rest()
	s.edit("a", version("2"))
	s.edit("b", version("2"))
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"a", "b"}))
}

func TestLongestMinReadySecondsOfThoseThatSelectADeploymentCounts(t *testing.T) {
	s := overlapping(t, minReady(600))
	s.change("two", minReady(60))
	s.rest()
	s.edit("b", version("2"))
	s.edit("c", version("2"))
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"b"}))
	s.finishes("b")
	s.Expect(s.rest()).To(Equal(10 * time.Minute))
	s.pass(10 * time.Minute)
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"c"}))
	s.finishes("c")
	s.Expect(s.rest()).To(Equal(time.Minute))
}

func TestNothingIsUnpausedOnHalfAJournal(t *testing.T) {
	s := overlapping(t)
	s.edit("b", version("2"))
	refuse := true
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		if refuse && strings.HasSuffix(write, "status two") {
			return fixture.Fault{Err: apierrors.NewServiceUnavailable("not now")}
		}
		return fixture.Fault{}
	}
	for range 3 {
		_, err := s.try(s.reconciler)
		s.Expect(err).To(HaveOccurred())
		s.Expect(s.unpaused()).To(BeEmpty())
		s.reconcile()
		s.Expect(s.unpaused()).To(BeEmpty(), "nor before it is tried again")
		s.pass(5 * time.Minute)
	}
	s.Expect([]string{s.active("one"), s.active("two")}).To(ConsistOf("b", ""))

	refuse = false
	s.restart()
	s.rest()
	s.Expect([]string{s.active("one"), s.active("two")}).To(Equal([]string{"b", "b"}))
	s.Expect(s.unpaused()).To(Equal([]string{"b"}))
}

// A label joins two groups, and a Deployment rolls out in each of them.
func TestFurthestAlongGoesOnWhenTwoGroupsBecomeOne(t *testing.T) {
	s := open(t)
	s.deployed("a", labelled("one"), replicas(2))
	s.deployed("b", labelled("two"), replicas(2))
	s.coordinate("one")
	s.coordinate("two")
	s.rest()
	s.edit("a", version("2"))
	s.edit("b", version("2"))
	s.rest()
	s.begins("a")
	s.begins("b")
	s.progresses("b", 1)
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"a", "b"}))

	s.deployed("c", labelled("one", "two"))
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"b"}))
	s.Expect([]string{s.active("one"), s.active("two")}).To(Equal([]string{"", "b"}))
	s.finishes("b")
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"a"}), "it is half-rolled, so it goes on next")
}
