// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// passes counts how often the schedules were evaluated.
type passes struct {
	clock *fixture.Clock
	count atomic.Int64
}

func (p *passes) now() time.Time {
	p.count.Add(1)
	return p.clock.Now()
}

// patch edits an object that the controller writes at the same time.
func (s *stage) patch(o client.Object, change string) {
	if o.GetNamespace() == fixture.Namespace {
		o.SetNamespace(s.namespace)
	}
	s.Expect(s.Patch(s.ctx, o, client.RawPatch(types.MergePatchType, []byte(change)))).To(Succeed())
}

func TestWhatASchedulesGatesDependOnWakesIt(t *testing.T) {
	for name, build := range map[string]func(s *stage) client.Object{
		"RolloutSchedule": func(*stage) client.Object { return fixture.MakeSchedule("days").Selecting(team).Obj() },
		"ClusterRolloutSchedule": func(s *stage) client.Object {
			return fixture.MakeSchedule("days").Selecting(team).Cluster(labelled("stage", s.namespace))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStageAlone(t, shopOf("shop", nil))
			s.labelNamespace("stage", s.namespace)
			s.play(t, testPlane.RESTConfig())
			c := s.follow(t, build(s))
			awaitPassing := func(want ...string) {
				t.Helper()
				s.Eventually(func() []string { return s.passing() }).Should(Equal(want))
			}
			s.Eventually(func() int64 { return c.read().status.ObservedGeneration }).Should(Equal(int64(1)))
			s.patch(fixture.MakeRollout("shop").Obj(), `{"metadata":{"labels":{"team":"shop"}}}`)
			awaitPassing("shop open")
			s.patch(s.gate(), `{"spec":{"passing":false}}`)
			awaitPassing("shop open")
			s.remove(s.gate(), s.gate().Name)
			awaitPassing("shop open")
			cart := shopOf("cart", team)
			cart.Namespace = s.namespace
			s.Expect(s.Create(s.ctx, cart)).To(Succeed())
			awaitPassing("cart open", "shop open")
			s.patch(c.read().Object, `{"spec":{"action":"Deny"}}`)
			awaitPassing("cart closed", "shop closed")
			s.remove(&v1alpha1.Rollout{}, "cart")
			awaitPassing("shop closed")
			s.patch(fixture.MakeRollout("shop").Obj(), `{"metadata":{"labels":null}}`)
			s.Eventually(func() []string { return s.passing() }).Should(BeEmpty())
			s.Eventually(func() int32 { return c.read().status.MatchingRollouts }).Should(BeZero())
		})
	}
}

func TestTheLabelOfANamespaceWakesTheSchedulesOfTheCluster(t *testing.T) {
	s := openStageAlone(t, shopOf("shop", team))
	s.play(t, testPlane.RESTConfig())
	c := s.follow(t, fixture.MakeSchedule("days").Selecting(team).Cluster(labelled("stage", s.namespace)))
	s.Eventually(func() int64 { return c.read().status.ObservedGeneration }).Should(Equal(int64(1)))
	s.labelNamespace("stage", s.namespace)
	s.Eventually(func() []string { return s.passing() }).Should(Equal([]string{"shop open"}))
	s.labelNamespace("stage", "")
	s.Eventually(func() []string { return s.passing() }).Should(BeEmpty())
}

func TestATransitionReachesGateAndRolloutByItself(t *testing.T) {
	s := openLabelledShop(t, team)
	s.pass(time.Hour - time.Second)
	s.play(t, testPlane.RESTConfig())
	c := s.follow(t, fixture.MakeSchedule("mornings").Deny().Obj())
	s.Eventually(func() []string { return s.passing() }).Should(Equal([]string{"shop closed"}))
	s.release("shop", "1.1.0")
	s.Eventually(func() condition { return s.condition("shop", v1alpha1.GatesPassingCondition) }).Should(
		HaveField("Reason", v1alpha1.ScheduleClosedReason))
	s.pass(time.Second)
	s.comesTo("shop", promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeDeploying})
	s.Eventually(func() []string { return s.passing() }).Should(Equal([]string{"shop open"}))
	s.Eventually(func() bool { return *s.rollout("shop").Status.Gates[0].Passing }).Should(BeTrue())
	s.Eventually(func() bool { return c.read().status.Active }).Should(BeFalse())
}

func TestOnlyTheStatusOfARolloutWakesNoSchedule(t *testing.T) {
	s := openStageAlone(t, shopOf("shop", team))
	requests := &fixture.Requests{}
	user := testPlane.RESTConfig()
	user.Wrap(requests.Wrap)
	looked := &passes{clock: s.clock}
	s.playWith(t, user, looked.now)
	c := s.follow(t, fixture.MakeSchedule("days").Obj())
	s.Eventually(func() []string { return c.read().status.ManagedGates }).Should(HaveLen(1))
	s.Eventually(func() []v1alpha1.RolloutGateStatusSummary { return s.rollout("shop").Status.Gates }).Should(HaveLen(1))
	time.Sleep(time.Second) // until the events of the controller's own writes are over
	before, asked := looked.count.Load(), requests.Count("")
	for i := range 5 {
		s.changeStatus(fixture.MakeRollout("shop").Obj(), func(o client.Object) {
			title := strings.Repeat("shop", i+1)
			o.(*v1alpha1.Rollout).Status.Title = &title
		})
	}
	s.Consistently(func() int64 { return looked.count.Load() }, time.Second).Should(Equal(before))
	s.Expect(requests.Count("")).To(Equal(asked), "nothing is asked of the API server")
}
