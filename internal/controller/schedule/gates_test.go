// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestGateOfASchedule(t *testing.T) {
	s := open(t, shopOf("shop", nil))
	s.LabelNamespace("stage", s.Namespace)
	own := s.follow(t, fixture.MakeSchedule("days").Annotate(v1alpha1.PrettyNameAnnotation, "Working hours").Annotate("other", "stays").Obj())
	own.tick()
	gate := s.Gate()
	s.Expect(gate.Name).To(MatchRegexp("^schedule-gate-days-[0-9a-f]{12}$"))
	s.Expect(gate.Labels).To(Equal(map[string]string{
		"gate.kuberik.com/schedule-kind": "RolloutSchedule", "gate.kuberik.com/schedule-name": "days",
		"gate.kuberik.com/schedule-namespace": s.Namespace, "gate.kuberik.com/rollout-name": "shop",
	}))
	s.Expect(gate.Annotations).To(Equal(map[string]string{"gate.kuberik.com/pretty-name": "Working hours"}))
	s.Expect(gate.OwnerReferences).To(Equal([]metav1.OwnerReference{{
		APIVersion: "kuberik.com/v1alpha1", Kind: "RolloutSchedule", Name: "days", UID: own.read().GetUID(), Controller: new(true), BlockOwnerDeletion: new(true),
	}}))
	s.Expect(gate.Spec).To(Equal(v1alpha1.RolloutGateSpec{RolloutRef: &v1alpha1.LocalObjectReference{Name: "shop"}, Passing: new(true)}))
	s.Remove(own.object, "days")
	s.Remove(gate, gate.Name)

	cluster := s.follow(t, fixture.MakeSchedule("days").Cluster(labelled("stage", s.Namespace)))
	cluster.tick()
	s.Expect(s.Gate().Labels).To(And(
		HaveKeyWithValue("gate.kuberik.com/schedule-kind", "ClusterRolloutSchedule"), Not(HaveKey("gate.kuberik.com/schedule-namespace"))))
	s.Expect(s.Gate().OwnerReferences).To(ConsistOf(And(HaveField("Kind", "ClusterRolloutSchedule"), HaveField("UID", cluster.read().GetUID()))))
}

func TestGateThatWasChangedByHandIsRestored(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.RolloutGate){
		"another passing":           func(g *v1alpha1.RolloutGate) { *g.Spec.Passing = false },
		"allowed versions":          func(g *v1alpha1.RolloutGate) { g.Spec.AllowedVersions = &[]string{"1.0.0"} },
		"another Rollout":           func(g *v1alpha1.RolloutGate) { g.Spec.RolloutRef.Name = "cart" },
		"another Rollout, selected": func(g *v1alpha1.RolloutGate) { g.Spec.RolloutRef.Name = "side" },
		"no labels":                 func(g *v1alpha1.RolloutGate) { g.Labels = nil },
		"another pretty name":       func(g *v1alpha1.RolloutGate) { g.Annotations[v1alpha1.PrettyNameAnnotation] = "mine" },
		"a description":             func(g *v1alpha1.RolloutGate) { g.Annotations[v1alpha1.DescriptionAnnotation] = "mine" },
		"no owner":                  func(g *v1alpha1.RolloutGate) { g.OwnerReferences = nil },
		"an owner that is not the controller": func(g *v1alpha1.RolloutGate) {
			g.OwnerReferences[0].Controller, g.OwnerReferences[0].BlockOwnerDeletion = nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopOf("shop", team), shopOf("side", team), shopOf("cart", nil))
			c := s.follow(t, fixture.MakeSchedule("days").Selecting(team).Annotate(v1alpha1.PrettyNameAnnotation, "Days").Obj())
			c.tick()
			before := s.Gates()
			spoilt := before[0].DeepCopy()
			change(spoilt)
			s.Expect(s.Update(s.Ctx, spoilt)).To(Succeed())
			c.tick()
			after := s.Gates()
			for i := range after {
				after[i].ResourceVersion, before[i].ResourceVersion = "", ""
				after[i].Generation, before[i].Generation = 0, 0
				after[i].ManagedFields, before[i].ManagedFields = nil, nil
			}
			s.Expect(after).To(Equal(before))
		})
	}
}

func TestGateKeepsWhatOthersAdd(t *testing.T) {
	s := open(t, shopOf("shop", nil))
	c := s.follow(t, fixture.MakeSchedule("days").Annotate(v1alpha1.PrettyNameAnnotation, "Days").Obj())
	c.tick()
	s.Change(s.Gate(), func(o client.Object) {
		o.SetAnnotations(map[string]string{"team": "shop", v1alpha1.PrettyNameAnnotation: "Days"})
		labels := maps.Clone(o.GetLabels())
		labels["team"] = "shop"
		o.SetLabels(labels)
	})
	s.Wire.Forget()
	c.tick()
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	c.edit(func(o gather.Schedule) { o.SetAnnotations(nil) })
	c.tick()
	s.Expect(s.Gate().Annotations).To(Equal(team), "though the cache does not show it")
}

func TestGateThatIsDeletedComesBack(t *testing.T) {
	s := open(t, shopOf("shop", nil))
	c := s.follow(t, fixture.MakeSchedule("days").Obj())
	c.tick()
	first := s.Gate()
	s.Remove(first, first.Name)
	c.tick()
	s.Expect(s.Gate().Name).To(Equal(first.Name))
}

func TestScheduleOfAnotherControllerIsTakenOver(t *testing.T) {
	made := func(c *followed, name, rollout string) *v1alpha1.RolloutGate {
		gate := fixture.MakeGate(name, rollout).Closed().Obj()
		gate.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(c.read().Object, v1alpha1.GroupVersion.WithKind("RolloutSchedule"))}
		return gate
	}
	s := open(t, shopOf("shop", nil))
	c := s.follow(t, fixture.MakeSchedule("days").Obj())
	s.Add(made(c, "schedule-gate-x7k2p", "shop"))
	c.tick()
	s.Expect(s.Gate().Name).To(Equal("schedule-gate-x7k2p"), "the one that is there is used")
	s.Expect(s.Passing()).To(Equal([]string{"shop open"}))
	s.Expect(c.read().Status.ManagedGates).To(Equal([]string{"schedule-gate-x7k2p"}))

	s.Add(made(c, "schedule-gate-zzzzz", "shop"), made(c, "schedule-gate-aaaaa", "gone"), fixture.MakeGate("approval", "shop").Closed().Obj())
	c.tick()
	s.Expect(s.Passing()).To(Equal([]string{"shop closed", "shop open"}), "what others own stays")
	s.Expect(c.read().Status.ManagedGates).To(HaveLen(1))
}

// orphan leaves the gates of a schedule without an owner, as kubectl delete --cascade=orphan
// does, and deletes the schedule.
func (c *followed) orphan() {
	gates := c.Gates()
	for i := range gates {
		c.Change(&gates[i], func(o client.Object) { o.SetOwnerReferences(nil) })
	}
	c.Remove(c.object, c.object.GetName())
}

func TestGatesThatAScheduleLeavesBehindAreDeleted(t *testing.T) {
	for name, build := range map[string]func(s *testEnv, name string) client.Object{
		"RolloutSchedule": func(_ *testEnv, name string) client.Object { return fixture.MakeSchedule(name).Obj() },
		"ClusterRolloutSchedule": func(s *testEnv, name string) client.Object {
			return fixture.MakeSchedule(name).Cluster(labelled("stage", s.Namespace))
		},
		"a name that is longer than a label": func(_ *testEnv, name string) client.Object {
			return fixture.MakeSchedule(name + strings.Repeat("x", 60)).Obj()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopOf("shop", nil), shopOf("cart", nil), fixture.MakeGate("approval", "shop").Closed().Obj())
			s.LabelNamespace("stage", s.Namespace)
			gone := s.follow(t, build(s, "freeze"))
			gone.tick()
			gone.orphan()
			other := s.follow(t, build(s, "other"))
			other.tick()
			s.play(t, testPlane.RESTConfig(), s.Clock.Now)
			s.Eventually(func() []string { return s.Passing() }).Should(Equal([]string{"cart open", "shop closed", "shop open"}))
		})
	}
}

func TestOnlyTheInstanceForUnlabelledObjectsLooksForWhatIsLeftBehind(t *testing.T) {
	s := open(t, shopOf("shop", nil))
	c := s.follow(t, fixture.MakeSchedule("freeze").Obj())
	c.tick()
	c.orphan()
	gate := s.Gate()
	s.Expect(c.reconciler.scheduleOfGate(s.Ctx, gate)).To(Equal([]ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(c.object)}}))
	c.reconciler.Shard.Selector = labels.SelectorFromSet(team)
	s.Expect(c.reconciler.scheduleOfGate(s.Ctx, gate)).To(BeEmpty())
}

// A restore creates the schedule again, with another UID. Its gates have an owner that is gone,
// or none.
func TestScheduleThatIsRestoredDeletesTheGatesOfTheOldOne(t *testing.T) {
	for name, keepOwner := range map[string]bool{"with owners": true, "without owners": false} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopOf("shop", nil))
			old := s.follow(t, fixture.MakeSchedule("freeze").Deny().Obj())
			old.tick()
			before := s.Gate().Name
			if keepOwner {
				s.Remove(old.object, "freeze")
			} else {
				old.orphan()
			}
			c := s.follow(t, fixture.MakeSchedule("freeze").Obj())
			c.tick()
			s.Expect(s.Passing()).To(Equal([]string{"shop open"}))
			s.Expect(s.Gate().Name).NotTo(Equal(before))
			s.Expect(c.read().Status.ManagedGates).To(Equal([]string{s.Gate().Name}))
		})
	}
}

func TestLongNamesHaveGates(t *testing.T) {
	long := strings.Repeat("a.b-c", 50)
	s := open(t, shopOf(long, nil), shopOf(long+"d", nil))
	c := s.follow(t, fixture.MakeSchedule(long+"e").Obj())
	c.tick()
	s.Expect(s.Passing()).To(Equal([]string{long + " open", long + "d open"}))
	s.Expect(s.Gates()[0].Labels).To(HaveKeyWithValue(v1alpha1.RolloutNameLabel, MatchRegexp(`^(a\.b-c)+.*-[0-9a-f]{12}$`)))
	s.Wire.Forget()
	c.tick()
	s.Expect(s.Wire.Writes()).To(BeEmpty())
}

func TestAnnotationsAreMirrored(t *testing.T) {
	s := open(t, shopOf("shop", nil))
	c := s.follow(t, fixture.MakeSchedule("days").Obj())
	for _, annotations := range []map[string]string{
		{v1alpha1.PrettyNameAnnotation: "Days", v1alpha1.DescriptionAnnotation: "when people work"},
		{v1alpha1.PrettyNameAnnotation: "Working days"},
		{v1alpha1.PrettyNameAnnotation: ""},
		nil,
	} {
		c.edit(func(o gather.Schedule) { o.SetAnnotations(annotations) })
		c.tick()
		s.Expect(s.Gate().Annotations).To(Equal(annotations))
	}
}

func TestGateThatCannotBeWrittenIsTriedAgainAndHoldsUpNoOther(t *testing.T) {
	s := open(t, shopOf("a", nil), shopOf("b", nil), shopOf("c", nil))
	c := s.follow(t, fixture.MakeSchedule("days").Obj())
	s.Wire.Fail = func(_ int, write string, o client.Object) fixture.Fault {
		if gate, ok := o.(*v1alpha1.RolloutGate); ok && gate.RolloutName() == "b" {
			return fixture.Fault{Err: errors.New("no space")}
		}
		return fixture.Fault{}
	}
	_, err := c.tryTick()
	s.Expect(err).To(MatchError(ContainSubstring("no space")), "it comes back by itself")
	s.Expect(s.Passing()).To(Equal([]string{"a open", "c open"}))
	s.Expect(c.ready()).To(And(
		HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.GateWriteFailedReason), HaveField("Message", MatchRegexp(
			"^open by rule mornings until 2026-03-02T13:00:00Z; 1 gate could not be written: create RolloutGate .*: no space$"))))
	s.Expect(c.read().Status.ManagedGates).To(HaveLen(2))
	s.Expect(s.Events.Take()).To(ConsistOf(And(HaveField("Type", corev1.EventTypeWarning), HaveField("Reason", v1alpha1.GateWriteFailedReason))))

	s.Wire.Fail = nil
	c.tick()
	s.Expect(s.Passing()).To(Equal([]string{"a open", "b open", "c open"}))
	s.Expect(c.ready().Reason).To(Equal(v1alpha1.ScheduleOpenReason))
}

func TestLostAnswerOrAnOldCacheMakesNoSecondGate(t *testing.T) {
	s := open(t, shopOf("shop", nil))
	c := s.follow(t, fixture.MakeSchedule("days").Obj())
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		if strings.HasPrefix(write, "create RolloutGate") {
			return fixture.Fault{Err: errors.New("timeout"), Lost: true}
		}
		return fixture.Fault{}
	}
	_, err := c.tryTick()
	s.Expect(err).To(HaveOccurred())
	s.Wire.Fail = nil
	c.restart()
	c.tick()
	s.Expect(s.Passing()).To(Equal([]string{"shop open"}))

	c.reconciler.Client = withoutGates{s.cached}
	s.Expect(c.tick()).To(Equal(ctrl.Result{RequeueAfter: recheck.AfterConflict}))
	s.Expect(s.Passing()).To(Equal([]string{"shop open"}))
}

func TestRolloutInANamespaceThatGoesNeedsNoGate(t *testing.T) {
	s := open(t, shopOf("shop", nil))
	c := s.follow(t, fixture.MakeSchedule("days").Obj())
	s.Expect(s.Delete(s.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}})).To(Succeed())
	s.Expect(c.tick()).To(Equal(ctrl.Result{RequeueAfter: time.Hour}))
	s.Expect(s.Passing()).To(BeEmpty())
}

// A schedule with many Rollouts gives its worker away in between.
func TestPassWritesAtMostSomeGates(t *testing.T) {
	for name, tt := range map[string]struct {
		schedule client.Object
		passes   []int
	}{
		"RolloutSchedule":        {fixture.MakeSchedule("days").Obj(), []int{50, 50, 20}},
		"ClusterRolloutSchedule": {fixture.MakeSchedule("days").Selecting(map[string]string{"only": "many"}).Cluster(nil), []int{120}},
	} {
		t.Run(name, func(t *testing.T) {
			var all []client.Object
			for n := range 120 {
				all = append(all, shopOf(fmt.Sprintf("shop-%03d", n), map[string]string{"only": "many"}))
			}
			s := open(t, all...)
			c := s.follow(t, tt.schedule)
			var passes []int
			for {
				s.Wire.Forget()
				c.restart()
				result := c.tick()
				gates := slices.DeleteFunc(s.Wire.Writes(), func(write string) bool { return !strings.Contains(write, " RolloutGate ") })
				if len(gates) == 0 {
					break
				}
				passes = append(passes, len(gates))
				s.Expect(result.RequeueAfter == recheck.AtOnce).To(Equal(len(gates) == mostWrites))
			}
			s.Expect(passes).To(Equal(tt.passes))
			s.Expect(c.read().Status.ManagedGates).To(HaveLen(120))
			s.Expect(s.Passing()).To(HaveLen(120))
		})
	}
}
