// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
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

func TestScheduleIsWokenByWhatItsGatesDependOn(t *testing.T) {
	for name, build := range map[string]func(s *testEnv) client.Object{
		"RolloutSchedule": func(*testEnv) client.Object { return fixture.MakeSchedule("days").Selecting(team).Obj() },
		"ClusterRolloutSchedule": func(s *testEnv) client.Object {
			return fixture.MakeSchedule("days").Selecting(team).Cluster(labelled("stage", s.Namespace))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopOf("shop", nil))
			s.LabelNamespace("stage", s.Namespace)
			s.play(t, testPlane.RESTConfig(), s.Clock.Now)
			c := s.follow(t, build(s))
			awaitPassing := func(want ...string) {
				t.Helper()
				s.Eventually(func() []string { return s.Passing() }).Should(Equal(want))
			}
			s.Eventually(func() int64 { return c.read().Status.ObservedGeneration }).Should(Equal(int64(1)))
			s.Merge(fixture.MakeRollout("shop").Obj(), `{"metadata":{"labels":{"team":"shop"}}}`)
			awaitPassing("shop open")
			s.Merge(s.Gate(), `{"spec":{"passing":false}}`)
			awaitPassing("shop open")
			s.Remove(s.Gate(), s.Gate().Name)
			awaitPassing("shop open")
			cart := shopOf("cart", team)
			cart.Namespace = s.Namespace
			s.Expect(s.Create(s.Ctx, cart)).To(Succeed())
			awaitPassing("cart open", "shop open")
			s.Merge(c.read().Object, `{"spec":{"action":"Deny"}}`)
			awaitPassing("cart closed", "shop closed")
			s.Remove(&v1alpha1.Rollout{}, "cart")
			awaitPassing("shop closed")
			s.Merge(fixture.MakeRollout("shop").Obj(), `{"metadata":{"labels":null}}`)
			s.Eventually(func() []string { return s.Passing() }).Should(BeEmpty())
			s.Eventually(func() int32 { return c.read().Status.MatchingRollouts }).Should(BeZero())
		})
	}
}

func TestLabelOfANamespaceWakesTheSchedulesOfTheCluster(t *testing.T) {
	s := open(t, shopOf("shop", team))
	s.play(t, testPlane.RESTConfig(), s.Clock.Now)
	c := s.follow(t, fixture.MakeSchedule("days").Selecting(team).Cluster(labelled("stage", s.Namespace)))
	s.Eventually(func() int64 { return c.read().Status.ObservedGeneration }).Should(Equal(int64(1)))
	s.LabelNamespace("stage", s.Namespace)
	s.Eventually(func() []string { return s.Passing() }).Should(Equal([]string{"shop open"}))
	s.LabelNamespace("stage", "")
	s.Eventually(func() []string { return s.Passing() }).Should(BeEmpty())
}

func TestStatusOfARolloutWakesNoSchedule(t *testing.T) {
	s := open(t, shopOf("shop", team))
	requests := &fixture.Requests{}
	user := testPlane.RESTConfig()
	user.Wrap(requests.Wrap)
	looked := &passes{clock: s.Clock}
	s.play(t, user, looked.now)
	c := s.follow(t, fixture.MakeSchedule("days").Obj())
	s.Eventually(func() []string { return c.read().Status.ManagedGates }).Should(HaveLen(1))
	time.Sleep(time.Second) // until the events of the controller's own writes are over
	before, asked := looked.count.Load(), requests.Count("")
	for i := range 5 {
		s.ChangeStatus(fixture.MakeRollout("shop").Obj(), func(o client.Object) {
			title := strings.Repeat("shop", i+1)
			o.(*v1alpha1.Rollout).Status.Title = &title
		})
	}
	s.Consistently(func() int64 { return looked.count.Load() }, time.Second).Should(Equal(before))
	s.Expect(requests.Count("")).To(Equal(asked), "nothing is asked of the API server")
}
