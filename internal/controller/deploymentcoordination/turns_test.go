// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestFurthestAlongOfSeveralThatRollGoesOn(t *testing.T) {
	s := open(t)
	for i, name := range []string{"a", "b", "c"} {
		s.deploy(name, replicas(3))
		s.finishes(name)
		s.edit(name, version("2"))
		s.begins(name)
		s.progresses(name, []int32{1, 2, 0}[i])
	}
	s.coordinate("shop")
	s.rest()
	s.stays("b")
	s.Expect(s.reported()).To(ContainElements(coordinationv1.DeploymentActivatedEvent, coordinationv1.DeploymentPausedEvent))
	s.observes("a")
	s.observes("c")
	for _, next := range []string{"a", "c"} {
		s.finishes(s.active("shop"))
		s.rest()
		s.stays(next)
	}
}

// The Deployment was not paused, so its first ReplicaSet exists already.
func TestFirstInstallThatNobodyHeldCountsAsRolling(t *testing.T) {
	s := open(t)
	s.deployed("a")
	s.deploy("b")
	s.begins("b")
	s.edit("a", version("2"))
	s.coordinate("shop")
	s.rest()
	s.stays("b")
	s.finishes("b")
	s.rest()
	s.stays("a")
}

func TestWhoeverHasTheTurnAndIsGoneGivesItUpAtOnce(t *testing.T) {
	t.Parallel()
	for name, goes := range map[string]func(*testEnv){
		"deleted": func(s *testEnv) { s.Remove(&appsv1.Deployment{}, "a") },
		"relabelled": func(s *testEnv) {
			s.edit("a", labelled("other"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := three(t)
			s.edit("a", version("2"))
			s.edit("b", version("2"))
			s.rest()
			s.Expect(s.active("shop")).To(Equal("a"))
			s.reported()
			goes(s)
			s.rest()
			s.Expect(s.active("shop")).To(Equal("b"))
			s.Expect(s.unpaused()).To(ContainElement("b"))
			s.Expect(s.reported()).To(ContainElement(coordinationv1.ActiveDeploymentClearedEvent))
			s.Expect(s.coordination("shop").Status.Deployments).To(HaveLen(2))
		})
	}
}

// After the last one no Deployment has the turn.
func TestTurnIsClearedWhenTheLastOneIsDeleted(t *testing.T) {
	s := three(t)
	s.edit("a", version("2"))
	s.rest()
	s.reported()
	s.Remove(&appsv1.Deployment{}, "a")
	s.rest()
	s.Expect(s.active("shop")).To(BeEmpty())
	s.Expect(s.reported()).To(Equal([]string{coordinationv1.ActiveDeploymentClearedEvent}))
	s.Expect(s.condition("shop", coordinationv1.ReadyCondition)).To(HavePrefix("True AllDeploymentsReady"))
}

// A Deployment that is created again under the same name is another Deployment.
func TestDeploymentThatIsCreatedAgainInheritsNothing(t *testing.T) {
	s := three(t, minReady(3600))
	s.edit("a", version("2"))
	s.rest()
	s.finishes("a")
	s.rest()
	before := s.state("shop", "a")
	s.Expect(before.ReadySince).NotTo(BeNil())
	s.reported()

	s.Remove(&appsv1.Deployment{}, "a")
	s.deploy("a", paused(true))
	s.pass(2 * time.Hour)
	s.rest()
	after := s.state("shop", "a")
	s.Expect(after.UID).To(Equal(s.deployment("a").UID))
	s.Expect(after.LastRolloutFinished).To(BeNil())
	s.Expect(after.ReadySince).To(BeNil())
	s.Expect(after.LastRolloutStarted.Time).To(BeTemporally("==", s.Clock.Now()))
	s.stays("a")
	s.Expect(s.reported()).To(ContainElements(coordinationv1.ActiveDeploymentClearedEvent, coordinationv1.DeploymentActivatedEvent))
}

func TestTwoBusyDeploymentsDoNotStarveOthers(t *testing.T) {
	s := three(t)
	for _, name := range []string{"a", "b", "c"} {
		s.edit(name, version("2"))
	}
	s.rest()
	var turns []string
	for i := range 6 {
		turn := s.active("shop")
		turns = append(turns, turn)
		if turn != "c" {
			s.edit(turn, version(fmt.Sprint(i, "-middle"))) // a change during the rollout
			s.rest()
		}
		s.finishes(turn)
		s.rest()
		if turn != "c" {
			s.edit(turn, version(fmt.Sprint(i, "-next"))) // and one as soon as it is done
			s.rest()
		}
	}
	s.Expect(turns[:3]).To(Equal([]string{"a", "b", "c"}))
}

func TestNewWaveBeginsWithTheFirstInTheAlphabet(t *testing.T) {
	s := three(t)
	for _, wave := range []string{"2", "3"} {
		s.edit("c", version(wave))
		s.rest()
		s.edit("a", version(wave))
		s.edit("b", version(wave))
		for _, name := range []string{"c", "a", "b"} {
			s.rest()
			s.stays(name)
			s.finishes(name)
		}
		s.rest()
		s.pass(time.Hour)
	}
}

func TestOrderIsByAnnotationAndThenByName(t *testing.T) {
	s := open(t)
	for _, name := range []string{"d10", "d2", "d3", "d4"} {
		s.deployed(name)
	}
	s.coordinate("shop")
	s.rest()
	s.edit("d4", annotated(coordinationv1.OrderAnnotation, "-1"), version("2"))
	s.edit("d2", annotated(coordinationv1.OrderAnnotation, "7"), version("2"))
	s.edit("d3", version("2"))
	s.edit("d10", version("2"))
	for _, name := range []string{"d4", "d10", "d3", "d2"} {
		s.rest()
		s.stays(name)
		s.finishes(name)
	}
}

func TestOneThatIsHalfRolledGoesBeforeTheOrder(t *testing.T) {
	s := open(t)
	s.deployed("first", annotated(coordinationv1.OrderAnnotation, "-5"))
	s.deployed("half", replicas(3))
	s.edit("first", version("2"))
	s.edit("half", version("2"), paused(false))
	s.begins("half")
	s.progresses("half", 1)
	s.edit("half", paused(true))
	s.observes("half")
	s.coordinate("shop")
	s.rest()
	s.stays("half")
}

// At rest a pass only reads the cache.
func TestAtRestNothingIsReadNorWritten(t *testing.T) {
	s := three(t)
	reads := 0
	s.reconciler.APIReader = countingReader{s.WithWatch, &reads}
	s.Expect(s.rest()).To(BeZero())
	s.Expect(s.writes()).To(BeEmpty())
	s.Expect(reads).To(BeZero())

	s.edit("a", version("2"))
	s.rest()
	s.Expect(reads).NotTo(BeZero(), "a turn is given on what is read past the cache")
}

// TestWriteThatWaitsReadsNothing: in a busy namespace, each change would list everything
// past the cache for a write that is not made now.
func TestWriteThatWaitsReadsNothing(t *testing.T) {
	s := three(t)
	s.edit("a", version("2"))
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		if write == "patch Deployment a" {
			return fixture.Fault{Err: errRefused}
		}
		return fixture.Fault{}
	}
	_, err := s.try(s.reconciler)
	s.Expect(err).To(HaveOccurred())
	reads := 0
	s.reconciler.APIReader = countingReader{s.WithWatch, &reads}
	s.edit("c", replicas(5))
	s.rest()
	s.Expect(reads).To(BeZero())

	s.Wire.Fail = nil
	s.pass(time.Minute)
	s.rest()
	s.Expect(reads).NotTo(BeZero(), "a write that is made is decided on what is read past the cache")
	s.Expect(s.unpaused()).To(Equal([]string{"a"}))
}

// TestReplicaSetsAreReadInPages: a namespace may have thousands.
func TestReplicaSetsAreReadInPages(t *testing.T) {
	s := three(t)
	pages := &pagedReader{Reader: s.WithWatch}
	sets, err := setsOf(s.Ctx, origin{pages, 2}, s.Namespace)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(sets).To(HaveLen(3))
	s.Expect(pages.sizes).To(Equal([]int{2, 1}))
}

// pagedReader records how many ReplicaSets it reads at a time.
type pagedReader struct {
	client.Reader
	sizes []int
}

func (r *pagedReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := r.Reader.List(ctx, list, opts...)
	r.sizes = append(r.sizes, apimeta.LenList(list))
	return err
}

type countingReader struct {
	client.Reader
	reads *int
}

func (r countingReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	*r.reads++
	return r.Reader.List(ctx, list, opts...)
}
