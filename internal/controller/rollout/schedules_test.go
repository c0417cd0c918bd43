// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/controller/schedule"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// openLabelledShop opens an env in which 1.0.0 runs.
func openLabelledShop(t *testing.T, labels map[string]string) *testEnv {
	t.Helper()
	s := openAlone(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.LabelNamespace("stage", s.Namespace)
	s.Relabel("shop", labels)
	s.deploy("shop")
	return s
}

// tick runs one step of the reconciler of a RolloutSchedule, which makes its gates follow.
func (s *testEnv) tick(o client.Object) {
	r := &schedule.Reconciler{Client: s.reconciler.Client, Events: s.Events, Now: s.Clock.Now}
	_, err := r.Reconcile(s.Ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)})
	s.Expect(err).NotTo(HaveOccurred())
}

// team is the labels that Rollouts of a team have.
var team = map[string]string{"team": "shop"}

func labelled(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func TestClosedScheduleHoldsAReleaseUntilItOpens(t *testing.T) {
	for kind, build := range map[string]func(*testEnv, *fixture.ScheduleBuilder) client.Object{
		"RolloutSchedule": func(_ *testEnv, b *fixture.ScheduleBuilder) client.Object { return b.Obj() },
		"ClusterRolloutSchedule": func(s *testEnv, b *fixture.ScheduleBuilder) client.Object {
			return b.Cluster(labelled("stage", s.Namespace))
		},
	} {
		t.Run(kind, func(t *testing.T) {
			s := openLabelledShop(t, team)
			c := s.AddSchedule(t, build(s, fixture.MakeSchedule("days").Selecting(team).Deny()))
			s.release("shop", "1.1.0")
			s.deploy("shop")
			s.Events.Take()
			s.Expect(s.reconcile("shop")).To(Equal(ctrl.Result{RequeueAfter: time.Hour}), "at the next opening")
			s.Expect(s.history("shop")).To(HaveLen(1))
			s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition)).To(Equal(condition{
				metav1.ConditionFalse, v1alpha1.ScheduleClosedReason,
				"1.1.0: " + kind + " " + c.GetName() + " is closed by rule mornings until 2026-03-02T13:00:00Z"}))
			s.Expect(s.candidates("shop")).To(Equal(fixture.Releases("1.1.0")))
			s.Expect(s.rollout("shop").Status.GatedReleaseCandidates).To(BeEmpty())

			s.Pass(time.Hour - time.Second)
			s.Expect(s.reconcile("shop")).To(Equal(ctrl.Result{RequeueAfter: time.Second}))
			s.Pass(time.Second)
			s.deploy("shop")
			s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}))
			s.Expect(s.Events.Take()).NotTo(ContainElement(HaveField("Type", corev1.EventTypeWarning)))
		})
	}
}

func TestScheduleThatSelectsOthersHoldsNothing(t *testing.T) {
	s := openLabelledShop(t, team)
	night := fixture.MakeSchedule("night").Deny()
	s.AddSchedule(t, night.Selecting(map[string]string{"team": "cart"}).Obj())
	s.AddSchedule(t, night.Selecting(team).Cluster(labelled("stage", "another")))
	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.Expect(s.history("shop")).To(HaveLen(2))
}

func TestSchedulesGateIsOnlyTheVisibleCopy(t *testing.T) {
	for name, tt := range map[string]struct {
		schedule *fixture.ScheduleBuilder
		stale    bool
		promotes bool
	}{
		"a gate that still passes lets nothing through":  {fixture.MakeSchedule("days").Deny(), true, false},
		"a gate that is still closed holds nothing back": {fixture.MakeSchedule("days"), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := openLabelledShop(t, nil)
			c := s.AddSchedule(t, tt.schedule.Obj())
			s.tick(c)
			// The controller was away while the schedule changed.
			s.Change(s.Gate(), func(o client.Object) { *o.(*v1alpha1.RolloutGate).Spec.Passing = tt.stale })
			s.release("shop", "1.1.0")
			s.restart()
			s.deploy("shop")
			s.Expect(len(s.history("shop")) == 2).To(Equal(tt.promotes))
			shown := s.rollout("shop").Status.Gates
			s.Expect(shown).To(HaveLen(1))
			s.Expect(shown[0].Name).To(Equal(s.Gate().Name))
			s.Expect(*shown[0].Passing).To(Equal(tt.promotes), "the status shows what was judged")
		})
	}
}

func TestNewlyLabelledRolloutIsHeldBeforeItsGateExists(t *testing.T) {
	s := openLabelledShop(t, nil)
	s.AddSchedule(t, fixture.MakeSchedule("days").Selecting(team).Deny().Obj())
	s.release("shop", "1.1.0")
	s.Relabel("shop", team)
	s.deploy("shop")
	s.Expect(s.Gates()).To(BeEmpty())
	s.Expect(s.history("shop")).To(HaveLen(1))
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition).Reason).To(Equal(v1alpha1.ScheduleClosedReason))
}

func TestGateOfAScheduleThatIsGoneHoldsNothing(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.RolloutGate){
		"and the garbage collector has not seen it": func(*v1alpha1.RolloutGate) {},
		"deleted with --cascade=orphan":             func(gate *v1alpha1.RolloutGate) { gate.OwnerReferences = nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := openLabelledShop(t, nil)
			c := s.AddSchedule(t, fixture.MakeSchedule("days").Deny().Obj())
			s.tick(c)
			s.Change(s.Gate(), func(o client.Object) { change(o.(*v1alpha1.RolloutGate)) })
			s.Remove(&v1alpha1.RolloutSchedule{}, "days")
			s.release("shop", "1.1.0")
			s.deploy("shop")
			s.Expect(s.history("shop")).To(HaveLen(2))
			s.Expect(s.rollout("shop").Status.Gates).To(BeEmpty())
		})
	}
}

func TestGateOfAScheduleThatWasRestoredHoldsNothing(t *testing.T) {
	s := openLabelledShop(t, nil)
	c := s.AddSchedule(t, fixture.MakeSchedule("days").Deny().Obj())
	s.tick(c)
	s.Remove(&v1alpha1.RolloutSchedule{}, "days")
	s.AddSchedule(t, fixture.MakeSchedule("days").Obj())
	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.Expect(s.history("shop")).To(HaveLen(2), "the schedule of the name is open now")
}

func TestGateThatOnlyLooksLikeOneOfAScheduleHolds(t *testing.T) {
	labels := map[string]string{v1alpha1.ScheduleKindLabel: "RolloutSchedule", v1alpha1.ScheduleNameLabel: "days"}
	for name, tt := range map[string]struct {
		name   string
		labels map[string]string
	}{
		"by its name":   {"schedule-gate-days-1", nil},
		"by its labels": {"days", labels},
		"another kind":  {"schedule-gate-days-2", map[string]string{v1alpha1.ScheduleKindLabel: "Calendar", v1alpha1.ScheduleNameLabel: "days"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := openLabelledShop(t, nil)
			gate := fixture.MakeGate(tt.name, "shop").Closed().Obj()
			gate.Labels = tt.labels
			s.Add(gate)
			s.release("shop", "1.1.0")
			s.deploy("shop")
			s.Expect(s.history("shop")).To(HaveLen(1))
		})
	}
}

func TestScheduleThatIsBeingDeletedHoldsNothing(t *testing.T) {
	s := openLabelledShop(t, nil)
	freeze := fixture.MakeSchedule("freeze").Deny().Obj()
	freeze.Finalizers = []string{"example.com/slow"}
	c := s.AddSchedule(t, freeze)
	s.Expect(s.Delete(s.Ctx, c)).To(Succeed())
	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.Expect(s.history("shop")).To(HaveLen(2))
	s.EditSchedule(c, func(o gather.Schedule) { o.SetFinalizers(nil) })
}

func TestScheduleThatCannotBeEvaluatedHoldsWhatItSelects(t *testing.T) {
	s := openLabelledShop(t, nil)
	c := s.AddSchedule(t, fixture.MakeSchedule("days").Zone("Mars/Olympus").Obj())
	s.AddSchedule(t, fixture.MakeSchedule("also").Obj())
	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.Expect(s.history("shop")).To(HaveLen(1))
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.InvalidScheduleReason, "1.1.0: RolloutSchedule days cannot be evaluated: " +
			`spec.timezone "Mars/Olympus" is not a zone of the IANA database, such as Europe/Berlin`}))
	s.pinTo("1.1.0")
	s.deploy("shop")
	s.Expect(s.history("shop")).To(HaveLen(2), "a user may")

	s.EditSchedule(c, func(o gather.Schedule) { o.Spec.Timezone = "Europe/London" })
	s.pin("shop", nil)
	s.release("shop", "1.2.0")
	s.deploy("shop")
	s.Expect(s.history("shop")).To(HaveLen(3))
}

func TestTransitionReachesGateAndRolloutByItself(t *testing.T) {
	s := openLabelledShop(t, team)
	s.Pass(time.Hour - time.Second)
	s.play(t, testPlane.RESTConfig())
	c := s.AddSchedule(t, fixture.MakeSchedule("mornings").Deny().Obj())
	s.Eventually(func() []string { return s.Passing() }).Should(Equal([]string{"shop closed"}))
	s.release("shop", "1.1.0")
	s.Eventually(func() condition { return s.condition("shop", v1alpha1.GatesPassingCondition) }).Should(
		HaveField("Reason", v1alpha1.ScheduleClosedReason))
	s.Pass(time.Second)
	s.comesTo("shop", promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeDeploying})
	s.Eventually(func() []string { return s.Passing() }).Should(Equal([]string{"shop open"}))
	s.Eventually(func() bool { return *s.rollout("shop").Status.Gates[0].Passing }).Should(BeTrue())
	s.Eventually(func() bool { return s.Schedule(c).Status.Active }).Should(BeFalse())
}
