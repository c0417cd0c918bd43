// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// admission returns the values that the test sets.
type admission struct {
	reason string
	other  atomic.Value
	queue  atomic.Value
}

func (a *admission) Mode(string) (reason, message string) { return a.reason, "as the test says" }

func (a *admission) Other() string {
	other, _ := a.other.Load().(string)
	return other
}

func (a *admission) Changes() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		a.queue.Store(queue)
		return nil
	})
}

func TestNothingIsTouchedNextToAnotherCoordinator(t *testing.T) {
	s := open(t)
	s.deployed("a")
	s.edit("a", version("2"))
	s.deploy("b")
	second := &admission{reason: coordinationv1.AdmissionPolicyReason}
	second.other.Store("another one is installed")
	s.reconciler.Admission = second
	s.coordinate("shop")
	s.Expect(s.rest()).To(BeZero())
	s.Expect(s.unpaused()).To(Equal([]string{"b"}))
	s.Expect(s.active("shop")).To(BeEmpty())
	for _, kind := range []string{coordinationv1.ReadyCondition, coordinationv1.StalledCondition} {
		s.Expect(s.condition("shop", kind)).To(And(
			ContainSubstring(coordinationv1.OtherCoordinatorReason+": "), ContainSubstring("another one is installed")))
	}
	s.Expect(s.condition("shop", coordinationv1.HoldModeCondition)).To(Equal("True AdmissionPolicy: as the test says"))
}

func TestChangeOfTheAdmissionWakesTheController(t *testing.T) {
	s := openStreet(t)
	s.deploy([]string{"a"}, paused(true))
	s.coordinate("shop")
	second := &admission{reason: coordinationv1.AdmissionWebhookReason}
	second.other.Store("another one is installed")
	s.play(func(r *Reconciler) { r.Admission = second })
	s.Eventually(func() string { return conditionText(s.coordination("shop"), coordinationv1.StalledCondition) }).
		Should(ContainSubstring("another one is installed"))
	second.other.Store("")
	second.queue.Load().(workqueue.TypedRateLimitingInterface[reconcile.Request]).
		Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: s.Namespace}})
	s.idles("shop", "a")
}

// A failure that lasts only a moment is retried, and no condition reports it.
func TestTransientReadErrorsChangeNoCondition(t *testing.T) {
	s := three(t)
	for _, name := range []string{"a", "b"} {
		s.edit(name, version("2"))
		s.reconciler.APIReader = refusingReader{s.WithWatch}
		for range 2 {
			_, err := s.try(s.reconciler)
			s.Expect(err).To(MatchError(ContainSubstring("the API server is tired")))
			s.pass(readPatience / 2)
		}
		s.Expect(s.condition("shop", coordinationv1.ReadyCondition)).To(HavePrefix("True AllDeploymentsReady"))
		s.Expect(s.writes()).To(BeEmpty())

		s.reconciler.APIReader = s.WithWatch
		s.rest()
		s.stays(name)
		s.finishes(name)
		s.rest()
		s.Expect(s.active("shop")).To(BeEmpty())
		s.writes()
	}
}

// A read failure that lasts is reported, and no turn begins on a guess.
func TestReadErrorsAreShownAndNothingBegins(t *testing.T) {
	s := three(t)
	s.edit("a", version("2"))
	s.reconciler.APIReader = refusingReader{s.WithWatch}
	_, err := s.try(s.reconciler)
	s.Expect(err).To(MatchError(ContainSubstring("the API server is tired")))
	s.pass(readPatience)
	_, err = s.try(s.reconciler)
	s.Expect(err).To(MatchError(ContainSubstring("the API server is tired")))
	s.Expect(s.condition("shop", coordinationv1.DegradedCondition)).To(And(HavePrefix("True Error: "), ContainSubstring("the API server is tired")))
	s.Expect(s.active("shop")).To(BeEmpty())
	s.Expect(s.unpaused()).To(BeEmpty())

	s.reconciler.APIReader = s.WithWatch
	s.rest()
	s.stays("a")
	s.Expect(s.condition("shop", coordinationv1.DegradedCondition)).To(HavePrefix("False NoErrors"))
}

type refusingReader struct{ client.Reader }

func (refusingReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("the API server is tired")
}
