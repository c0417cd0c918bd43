// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// three opens an env in which three Deployments of one group are rolled out and at rest.
func three(t *testing.T, edits ...func(*coordinationv1.DeploymentCoordination)) *testEnv {
	t.Helper()
	s := open(t)
	s.three(edits...)
	return s
}

// three creates the three Deployments and their coordination, and waits until they are at rest.
func (s *testEnv) three(edits ...func(*coordinationv1.DeploymentCoordination)) {
	for _, name := range []string{"a", "b", "c"} {
		s.deployed(name)
	}
	s.coordinate("shop", edits...)
	s.rest()
	s.Expect(s.active("shop")).To(BeEmpty())
	s.writes()
	s.reported()
}

func isRelease(write string) bool { return strings.HasPrefix(write, "patch Deployment ") }

func TestControllerAfterACrashUnpausesWhatHasTheTurn(t *testing.T) {
	s := three(t)
	s.edit("b", version("2"))
	s.edit("c", version("2"))
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		if isRelease(write) {
			return fixture.Fault{Err: fixture.ErrDead, Fatal: true}
		}
		return fixture.Fault{}
	}
	for range 5 {
		_, _ = s.try(s.reconciler)
	}
	s.Expect(s.Wire.Dead()).To(BeTrue())
	s.Expect(s.active("shop")).To(Equal("b"), "the choice was written down")
	s.Expect(s.unpaused()).To(BeEmpty(), "and nothing done")

	s.Wire = &fixture.Wire{}
	s.restart()
	s.Events.Take()
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"b"}))
	s.Expect(s.active("shop")).To(Equal("b"))
	s.Expect(s.state("shop", "b").LastRolloutFinished).To(BeNil(), "it has not even begun")
	s.Expect(s.reported()).To(Equal([]string{coordinationv1.DeploymentUnpausedEvent}))
}

// A write that succeeded although its response was lost is not made again.
func TestUnpausingWhoseAnswerWasLostIsSeen(t *testing.T) {
	s := three(t)
	s.edit("b", version("2"))
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		if isRelease(write) {
			return fixture.Fault{Err: fixture.ErrDead, Lost: true, Fatal: true}
		}
		return fixture.Fault{}
	}
	for range 5 {
		_, _ = s.try(s.reconciler)
	}
	s.Wire = &fixture.Wire{}
	s.restart()
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"b"}))
	s.Expect(s.writes()).NotTo(ContainElement("patch Deployment b"))
}

func TestUnpausingThatIsRejectedIsReportedAndTriedAgain(t *testing.T) {
	s := three(t)
	s.edit("a", version("2"))
	s.edit("b", version("2"))
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		if isRelease(write) {
			return fixture.Fault{Err: errRefused}
		}
		return fixture.Fault{}
	}
	_, err := s.try(s.reconciler)
	s.Expect(err).To(MatchError(ContainSubstring("a quota says no")))
	reported := s.Events.Take()
	s.Expect(reported).To(ContainElement(HaveField("Reason", coordinationv1.UnpauseFailedEvent)))
	s.Expect(reported[len(reported)-1].Type).To(Equal("Warning"))
	s.Expect(reported[len(reported)-1].Message).To(ContainSubstring("a quota says no"))

	wait := s.rest()
	s.Expect(wait).To(BeNumerically(">", 0))
	s.Expect(s.active("shop")).To(Equal("a"), "it keeps its turn")
	s.Expect(s.state("shop", "a").LastRolloutFinished).To(BeNil())
	s.Expect(s.condition("shop", coordinationv1.DegradedCondition)).To(And(HavePrefix("True Error"), ContainSubstring("a quota says no")))
	before := len(s.Wire.Writes())
	s.reconcile()
	s.Expect(s.Wire.Writes()).To(HaveLen(before), "not before its time, whatever else happens")

	s.pass(wait)
	_, err = s.try(s.reconciler)
	s.Expect(err).To(HaveOccurred())
	s.Expect(s.rest()).To(BeNumerically(">", wait), "the pause grows")

	s.Wire.Fail = nil
	s.pass(s.rest())
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"a"}))
	s.Expect(s.condition("shop", coordinationv1.DegradedCondition)).To(HavePrefix("False NoErrors"))
}

// If a user fixes it by hand, no error remains.
func TestWriteThatIsNotWantedAnyMoreIsNoErrorAnyMore(t *testing.T) {
	s := three(t)
	s.edit("a", version("2"))
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		if isRelease(write) {
			return fixture.Fault{Err: errRefused}
		}
		return fixture.Fault{}
	}
	_, _ = s.try(s.reconciler)
	s.rest()
	s.Expect(s.condition("shop", coordinationv1.DegradedCondition)).To(HavePrefix("True Error"))
	s.Remove(&appsv1.Deployment{}, "a")
	s.Expect(s.rest()).To(BeZero())
	s.Expect(s.condition("shop", coordinationv1.DegradedCondition)).To(HavePrefix("False NoErrors"))

	s.edit("b", version("2"))
	_, _ = s.try(s.reconciler)
	s.edit("b", paused(false), annotated(coordinationv1.HeldByAnnotation, ""))
	s.rest()
	s.Expect(s.condition("shop", coordinationv1.DegradedCondition)).To(HavePrefix("False NoErrors"))
}

// An admission plugin with an old state pauses a Deployment again after it was unpaused.
func TestUnpausingThatAnAdmissionPluginUndoesIsNone(t *testing.T) {
	s := three(t)
	s.edit("a", version("2"))
	s.edit("b", version("2"))
	stale := true
	s.reconciler.Client = interceptor.NewClient(s.WithWatch, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := c.Patch(ctx, o, p, opts...); err != nil || !stale {
				return err
			}
			o.(*appsv1.Deployment).Spec.Paused = true
			return c.Update(ctx, o)
		},
	})
	_, err := s.try(s.reconciler)
	s.Expect(err).To(MatchError(errUndone))
	s.Expect(s.reported()).To(ContainElement(coordinationv1.UnpauseFailedEvent))
	s.Expect(s.unpaused()).To(BeEmpty())
	wait := s.rest()
	s.Expect(s.active("shop")).To(Equal("a"))
	s.Expect(s.state("shop", "a").LastRolloutFinished).To(BeNil())
	s.Expect(s.reported()).NotTo(ContainElement(coordinationv1.DeploymentUnpausedEvent))

	stale = false
	s.pass(wait)
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"a"}))
	s.Expect(s.reported()).To(ContainElement(coordinationv1.DeploymentUnpausedEvent))
}

// As long as a Deployment that has begun to roll out by itself cannot be paused, no other
// Deployment is unpaused.
func TestNothingIsUnpausedWhileOneCannotBeStopped(t *testing.T) {
	s := three(t)
	s.edit("a", version("2"))
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"a"}))
	s.edit("b", version("2"), paused(false))
	s.begins("b")
	s.edit("a", paused(true))
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		if write == "patch Deployment b" {
			return fixture.Fault{Err: errRefused}
		}
		return fixture.Fault{}
	}
	_, _ = s.try(s.reconciler)
	s.Expect(s.reported()).To(ContainElement(coordinationv1.PauseFailedEvent))
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"b"}), "a is not released on top of it")

	s.Wire.Fail = nil
	s.pass(time.Minute)
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"a"}))
}

// A Deployment with nothing to roll out has to be paused, but a policy of the cluster
// refuses all writes to it. Neither its own group nor another one waits for that.
func TestOneThatCannotBePausedHoldsUpNobodyWhoMayGo(t *testing.T) {
	s := three(t)
	s.deployed("x", labelled("store"))
	s.coordinate("store")
	s.rest()
	s.edit("c", paused(false), annotated(coordinationv1.HeldByAnnotation, ""))
	s.observes("c")
	s.edit("b", version("2"))
	s.edit("x", version("2"))
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		if write == "patch Deployment c" {
			return fixture.Fault{Err: errRefused}
		}
		return fixture.Fault{}
	}
	_, err := s.try(s.reconciler)
	s.Expect(err).To(MatchError(ContainSubstring("a quota says no")))
	s.Expect(s.unpaused()).To(Equal([]string{"b", "c", "x"}))
	s.rest()
	s.Expect(s.condition("shop", coordinationv1.DegradedCondition)).To(HavePrefix("True Error"))
	s.Expect(s.condition("store", coordinationv1.DegradedCondition)).To(HavePrefix("False NoErrors"))
}

// A group does not wait for the status of another group, and its bake ends on time.
func TestStatusThatCannotBeWrittenHoldsUpNoOtherGroup(t *testing.T) {
	s := three(t)
	s.deployed("x", labelled("store"))
	s.deployed("y", labelled("store"))
	s.coordinate("store", minReady(60))
	s.rest()
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		if write == "patch DeploymentCoordination/status shop" {
			return fixture.Fault{Err: apierrors.NewInternalError(errors.New("the disk is full"))}
		}
		return fixture.Fault{}
	}
	s.edit("a", version("2"))
	s.edit("x", version("2"))
	s.edit("y", version("2"))
	_, err := s.try(s.reconciler)
	s.Expect(err).To(MatchError(ContainSubstring("the disk is full")))
	s.Expect(s.unpaused()).To(Equal([]string{"x"}), "of shop nothing may be done")

	s.finishes("x")
	s.rest()
	for range 60 {
		s.pass(time.Second)
		_, _ = s.try(s.reconciler)
	}
	s.Expect(s.active("store")).To(Equal("y"))
	s.Expect(s.unpaused()).To(Equal([]string{"y"}))

	s.Wire.Fail = nil
	s.pass(5 * time.Minute)
	s.rest()
	s.Expect(s.active("shop")).To(Equal("a"))
}

func TestChoiceThatCannotBeWrittenDownIsNotMade(t *testing.T) {
	s := three(t)
	s.edit("a", version("2"))
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		return fixture.Fault{Err: apierrors.NewInternalError(errors.New("the disk is full"))}
	}
	_, err := s.try(s.reconciler)
	s.Expect(err).To(MatchError(ContainSubstring("the disk is full")))
	s.Expect(s.reported()).To(Equal([]string{coordinationv1.ActivationFailedEvent}))
	s.Expect(s.unpaused()).To(BeEmpty())
	s.Expect(s.writes()).To(Equal([]string{"patch DeploymentCoordination/status shop"}), "nothing else is tried")
}

func TestStatusThatCannotBeWrittenIsReported(t *testing.T) {
	s := three(t)
	s.change("shop", minReady(5))
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		return fixture.Fault{Err: apierrors.NewInternalError(errors.New("the disk is full"))}
	}
	_, err := s.try(s.reconciler)
	s.Expect(err).To(HaveOccurred())
	s.Expect(s.reported()).To(Equal([]string{coordinationv1.StatusUpdateFailedEvent}))
}

// whenFirst calls a function once, before the first write of a coordination's status.
func whenFirst(do func()) func(int, string, client.Object) fixture.Fault {
	once := sync.OnceFunc(do)
	return func(_ int, write string, _ client.Object) fixture.Fault {
		if strings.Contains(write, "DeploymentCoordination/status") {
			once()
		}
		return fixture.Fault{}
	}
}

// Two controllers decide on the same state, and the other one is faster: this one drops
// its decision, and then sees who has the turn.
func TestTurnIsGivenByOneOfTwoControllers(t *testing.T) {
	s := three(t)
	s.edit("b", version("2"))
	s.edit("c", version("2"))
	others := &fixture.Events{}
	other := &Reconciler{Client: s.WithWatch, APIReader: s.WithWatch, Events: others, Now: s.Clock.Now}
	s.Wire.Fail = whenFirst(func() {
		s.edit("a", version("2")) // the other controller decides differently because of this
		for range 3 {
			_, err := s.try(other)
			s.Expect(err).NotTo(HaveOccurred())
		}
	})
	result, err := s.try(s.reconciler)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(result.RequeueAfter).To(Equal(recheck.AfterConflict))
	s.Expect(s.reported()).To(BeEmpty(), "a choice that was dropped is not reported")
	s.Expect(s.writes()).To(Equal([]string{"patch DeploymentCoordination/status shop"}))

	s.rest()
	s.Expect(s.active("shop")).To(Equal("a"))
	s.Expect(s.unpaused()).To(Equal([]string{"a"}))
	s.Expect(s.reported()).NotTo(ContainElement(coordinationv1.DeploymentActivatedEvent))
	s.Expect(others.Take()).To(ContainElement(HaveField("Reason", coordinationv1.DeploymentActivatedEvent)))
}

// A user changes the Deployment between the decision and the write.
func TestOnlyTheVersionThatWasDecidedUponIsUnpaused(t *testing.T) {
	s := three(t)
	s.edit("a", version("2"))
	hold := sync.OnceFunc(func() { s.edit("a", userHeld(true)) })
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		if isRelease(write) {
			hold()
		}
		return fixture.Fault{}
	}
	result, err := s.try(s.reconciler)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(result.RequeueAfter).To(Equal(recheck.AfterConflict))
	s.Expect(s.unpaused()).To(BeEmpty())
	s.Expect(s.reported()).NotTo(ContainElement(coordinationv1.UnpauseFailedEvent), "it is no failure")
	s.rest()
	s.Expect(s.unpaused()).To(BeEmpty())
	s.Expect(s.condition("shop", coordinationv1.ReadyCondition)).To(HavePrefix("False ActiveDeploymentHeld"))
}

// A cache that lags shows an old journal. The controller does not act on it.
func TestUnpausingRestsOnTheJournalAsItIsStoredNow(t *testing.T) {
	s := three(t)
	s.edit("a", version("2"))
	s.edit("b", version("2"))
	s.rest()
	s.Expect(s.active("shop")).To(Equal("a"))
	old := s.coordination("shop")
	s.finishes("a")
	s.rest()
	s.Expect(s.active("shop")).To(Equal("b"))
	s.finishes("b")
	s.rest()
	s.Expect(s.active("shop")).To(BeEmpty())
	s.writes()

	s.restart()
	s.reconciler.Client = interceptor.NewClient(s.Wire.Through(s.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			if l, ok := list.(*coordinationv1.DeploymentCoordinationList); ok {
				l.Items = []coordinationv1.DeploymentCoordination{*old}
			}
			return err
		},
	})
	_, err := s.try(s.reconciler)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.unpaused()).To(BeEmpty(), "in the cache a has the turn")
	s.Expect(s.active("shop")).To(BeEmpty())
}
