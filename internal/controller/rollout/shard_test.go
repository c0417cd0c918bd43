// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// shards are two instances that share the work of an env by label, as in Flux, each with
// its own events.
type shards struct {
	*testEnv
	main, one *fixture.Events
}

func (s *testEnv) shared(t *testing.T) shards {
	t.Helper()
	instances := shards{testEnv: s, main: &fixture.Events{}, one: &fixture.Events{}}
	for selector, events := range map[string]*fixture.Events{
		"!sharding.fluxcd.io/key": instances.main, "sharding.fluxcd.io/key=one": instances.one,
	} {
		parsed, err := labels.Parse(selector)
		s.Expect(err).NotTo(HaveOccurred())
		s.playShard(t, testPlane.RESTConfig(), events, parsed)
	}
	return instances
}

// inShardOne labels an object for shard one.
func inShardOne(o client.Object) client.Object {
	o.SetLabels(map[string]string{"sharding.fluxcd.io/key": "one"})
	return o
}

// reasonsOn returns the reasons of the events on an object, in their order.
func reasonsOn(events []fixture.Event, name string) []string {
	var reasons []string
	for _, event := range events {
		if event.On == name {
			reasons = append(reasons, event.Reason)
		}
	}
	return reasons
}

func shopApart(name string) []client.Object {
	return []client.Object{
		fixture.MakeScan(name).Obj(), fixture.MakePolicy(name).Latest("1.0.0").Obj(),
		fixture.MakeRepository(name).DrivenBy(name).Obj(),
	}
}

func TestEachRolloutIsPromotedByTheInstanceThatItsLabelsName(t *testing.T) {
	s := open(t, append(shopApart("shop"), shopApart("cart")...)...)
	instances := s.shared(t)
	s.Add(fixture.MakeRollout("shop").Obj(), inShardOne(fixture.MakeRollout("cart").Obj()))
	for _, name := range []string{"shop", "cart"} {
		s.Eventually(func() string { return s.carried(name)["tag"] }).Should(Equal("1.0.0"))
	}
	s.Eventually(func() []promoted { s.fluxApplies(); return s.history("shop") }).Should(ConsistOf(HaveField("State", v1alpha1.BakeSucceeded)))
	s.Eventually(func() []promoted { return s.history("cart") }).Should(ConsistOf(HaveField("State", v1alpha1.BakeSucceeded)))

	once := []string{v1alpha1.BakeTimeDeployingReason, v1alpha1.DeploymentSucceededReason}
	s.Eventually(func() [][]string { // events are emitted after the write
		return [][]string{reasonsOn(instances.main.All(), "shop"), reasonsOn(instances.one.All(), "cart")}
	}).Should(Equal([][]string{once, once}))
	main, one := instances.main.Take(), instances.one.Take()
	s.Expect(len(main)+len(one)).To(Equal(4), "%v %v", main, one)
}

func TestRolloutThatChangesInstancesMidwayIsPromotedOnce(t *testing.T) {
	s := open(t, append(shopApart("shop"), fixture.MakeHealthCheck("web").Obj())...)
	instances := s.shared(t)
	s.Add(fixture.MakeRollout("shop").BakeTime(1 << 40).SelectAllChecks().Obj())
	s.Eventually(func() string { return s.carried("shop")["tag"] }).Should(Equal("1.0.0"))
	s.fluxApplies()
	s.Eventually(func() []string { return marks(s.check("web")) }).Should(HaveLen(1))
	mark := marks(s.check("web"))

	s.Merge(fixture.MakeRollout("shop").Obj(), `{"metadata":{"labels":{"sharding.fluxcd.io/key":"one"}}}`)
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeInProgress})
	s.Merge(fixture.MakeRollout("shop").Obj(), `{"metadata":{"labels":null}}`)
	s.pinTo("1.1.0")
	s.comesTo("shop", promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeDeploying})

	s.Expect(s.history("shop")).To(HaveLen(2))
	s.Expect(marks(s.check("web"))).To(Equal(mark), "the check was reset once for the first promotion")
	reported := map[string]int{}
	for _, event := range append(instances.main.Take(), instances.one.Take()...) {
		reported[event.Reason]++
	}
	s.Expect(reported).To(Equal(map[string]int{
		v1alpha1.BakeTimeDeployingReason: 2, v1alpha1.BakeTimeStartedReason: 1, v1alpha1.BakeTimeCancelledReason: 1,
	}))
}

func TestRolloutOfAnotherInstanceIsNotMissing(t *testing.T) {
	s := open(t, append(shopApart("cart"), fixture.MakeRepository("shop").DrivenBy("shpo").Obj())...)
	instances := s.shared(t)
	s.Add(inShardOne(fixture.MakeRollout("cart").Obj()))
	s.Eventually(func() string { return s.carried("cart")["tag"] }).Should(Equal("1.0.0"))
	s.Pass(2 * orphanGrace)
	s.Eventually(func() []string {
		s.Merge(fixture.MakeRepository("shop").Obj(), fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, s.Clock.Now().UnixNano()))
		s.Merge(fixture.MakeRepository("cart").Obj(), fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, s.Clock.Now().UnixNano()))
		s.Pass(orphanGrace)
		return reasonsOn(instances.main.Take(), "shop")
	}, "30s", "1s").Should(Equal([]string{v1alpha1.RolloutNotFoundReason}))
	s.Expect(reasonsOn(instances.one.Take(), "shop")).To(BeEmpty(), "one instance reports")

	s.Remove(&v1alpha1.Rollout{}, "cart")
	var reported []fixture.Event
	s.Eventually(func() []string {
		s.Pass(orphanGrace)
		reported = append(reported, instances.main.Take()...)
		return reasonsOn(reported, "cart")
	}, "30s", "1s").Should(Equal([]string{v1alpha1.RolloutNotFoundReason}))
	s.Expect(reported).To(ContainElement(HaveField("Type", corev1.EventTypeWarning)))
}

func TestScheduleKeepsTheGatesOfRolloutsOfAllInstances(t *testing.T) {
	s := open(t, append(shopApart("shop"), shopApart("cart")...)...)
	instances := s.shared(t)
	s.Add(fixture.MakeRollout("shop").Obj(), inShardOne(fixture.MakeRollout("cart").Obj()))
	deny := s.AddSchedule(t, fixture.MakeSchedule("freeze").Deny().Obj())
	other := fixture.MakeSchedule("other").Obj()
	own := s.AddSchedule(t, inShardOne(other))
	for _, c := range []client.Object{deny, own} {
		s.Eventually(func() int32 { return s.Schedule(c).Status.MatchingRollouts }).Should(Equal(int32(2)))
		s.Eventually(func() []string { return s.Schedule(c).Status.ManagedGates }).Should(HaveLen(2))
	}
	version := func() []string {
		versions := []string{s.Schedule(deny).GetResourceVersion(), s.Schedule(own).GetResourceVersion()}
		for _, gate := range s.Gates() {
			versions = append(versions, gate.Name+" "+gate.ResourceVersion)
		}
		return versions
	}
	s.Expect(s.Gates()).To(HaveLen(4))
	settled := version()
	s.Consistently(version, "2s").Should(Equal(settled), "nobody fights")
	for _, name := range []string{"shop", "cart"} {
		s.Eventually(func() []v1alpha1.RolloutGateStatusSummary { return s.rollout(name).Status.Gates }).Should(HaveLen(2))
	}

	s.Remove(&v1alpha1.Rollout{}, "cart")
	s.Eventually(func() int { return len(s.Gates()) }).Should(Equal(2))
	for _, c := range []client.Object{deny, own} {
		s.Eventually(func() int32 { return s.Schedule(c).Status.MatchingRollouts }).Should(Equal(int32(1)))
	}
	s.Expect(append(instances.main.Take(), instances.one.Take()...)).NotTo(ContainElement(HaveField("Reason", v1alpha1.GateWriteFailedReason)))
}
