// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// openLabelledShop opens a stage on which 1.0.0 runs.
func openLabelledShop(t *testing.T, labels map[string]string) *stage {
	t.Helper()
	s := openStageAlone(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.labelNamespace("stage", s.namespace)
	s.relabel("shop", labels)
	s.deploy("shop")
	return s
}

func TestAClosedScheduleHoldsAReleaseUntilItOpens(t *testing.T) {
	for kind, build := range map[string]func(*stage, *fixture.ScheduleBuilder) client.Object{
		"RolloutSchedule": func(_ *stage, b *fixture.ScheduleBuilder) client.Object { return b.Obj() },
		"ClusterRolloutSchedule": func(s *stage, b *fixture.ScheduleBuilder) client.Object {
			return b.Cluster(labelled("stage", s.namespace))
		},
	} {
		t.Run(kind, func(t *testing.T) {
			s := openLabelledShop(t, team)
			c := s.follow(t, build(s, fixture.MakeSchedule("days").Selecting(team).Deny()))
			s.release("shop", "1.1.0")
			s.deploy("shop")
			s.events.Take()
			s.Expect(s.reconcile("shop")).To(Equal(ctrl.Result{RequeueAfter: time.Hour}), "at the next opening")
			s.Expect(s.history("shop")).To(HaveLen(1))
			s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition)).To(Equal(condition{
				metav1.ConditionFalse, v1alpha1.ScheduleClosedReason,
				"1.1.0: " + kind + " " + c.object.GetName() + " is closed by rule mornings until 2026-03-02T13:00:00Z"}))
			s.Expect(s.candidates("shop")).To(Equal(fixture.Releases("1.1.0")))
			s.Expect(s.rollout("shop").Status.GatedReleaseCandidates).To(BeEmpty())

			s.pass(time.Hour - time.Second)
			s.Expect(s.reconcile("shop")).To(Equal(ctrl.Result{RequeueAfter: time.Second}))
			s.pass(time.Second)
			s.deploy("shop")
			s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}))
			s.Expect(s.events.Take()).NotTo(ContainElement(HaveField("Type", corev1.EventTypeWarning)))
		})
	}
}

func TestAScheduleThatSelectsOthersHoldsNothing(t *testing.T) {
	s := openLabelledShop(t, team)
	night := fixture.MakeSchedule("night").Deny()
	s.follow(t, night.Selecting(map[string]string{"team": "cart"}).Obj())
	s.follow(t, night.Selecting(team).Cluster(labelled("stage", "another")))
	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.Expect(s.history("shop")).To(HaveLen(2))
}

func TestASchedulesGateIsOnlyTheVisibleCopy(t *testing.T) {
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
			c := s.follow(t, tt.schedule.Obj())
			c.tick()
			// The controller was away while the schedule changed.
			s.change(s.gate(), func(o client.Object) { *o.(*v1alpha1.RolloutGate).Spec.Passing = tt.stale })
			s.release("shop", "1.1.0")
			s.restart()
			s.deploy("shop")
			s.Expect(len(s.history("shop")) == 2).To(Equal(tt.promotes))
			shown := s.rollout("shop").Status.Gates
			s.Expect(shown).To(HaveLen(1))
			s.Expect(shown[0].Name).To(Equal(s.gate().Name))
			s.Expect(*shown[0].Passing).To(Equal(tt.promotes), "the status shows what was judged")
		})
	}
}

func TestANewlyLabelledRolloutIsHeldBeforeItsGateExists(t *testing.T) {
	s := openLabelledShop(t, nil)
	s.follow(t, fixture.MakeSchedule("days").Selecting(team).Deny().Obj())
	s.release("shop", "1.1.0")
	s.relabel("shop", team)
	s.deploy("shop")
	s.Expect(s.gates()).To(BeEmpty())
	s.Expect(s.history("shop")).To(HaveLen(1))
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition).Reason).To(Equal(v1alpha1.ScheduleClosedReason))
}

func TestAGateWithoutItsScheduleIsAGateLikeAnyOther(t *testing.T) {
	s := openLabelledShop(t, nil)
	c := s.follow(t, fixture.MakeSchedule("days").Deny().Obj())
	c.tick()
	s.remove(&v1alpha1.RolloutSchedule{}, "days")
	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.SomeGatesBlockingReason, "1.1.0: not passing: RolloutGate " + s.gate().Name}))
	s.remove(s.gate(), s.gate().Name) // as the garbage collector does
	s.deploy("shop")
	s.Expect(s.history("shop")).To(HaveLen(2))
}

func TestAScheduleThatIsBeingDeletedHoldsNothing(t *testing.T) {
	s := openLabelledShop(t, nil)
	freeze := fixture.MakeSchedule("freeze").Deny().Obj()
	freeze.Finalizers = []string{"example.com/slow"}
	c := s.follow(t, freeze)
	s.Expect(s.Delete(s.ctx, c.read().Object)).To(Succeed())
	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.Expect(s.history("shop")).To(HaveLen(2))
	c.edit(func(o scheduleObject) { o.SetFinalizers(nil) })
}

func TestAScheduleThatCannotBeEvaluatedHoldsWhatItSelects(t *testing.T) {
	s := openLabelledShop(t, nil)
	c := s.follow(t, fixture.MakeSchedule("days").Zone("Mars/Olympus").Obj())
	s.follow(t, fixture.MakeSchedule("also").Obj())
	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.Expect(s.history("shop")).To(HaveLen(1))
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.InvalidScheduleReason, "1.1.0: RolloutSchedule days cannot be evaluated: " +
			`spec.timezone "Mars/Olympus" is no zone of the IANA database, such as Europe/Berlin`}))
	s.pinTo("1.1.0")
	s.deploy("shop")
	s.Expect(s.history("shop")).To(HaveLen(2), "a person may")

	c.edit(func(o scheduleObject) { o.spec.Timezone = "Europe/London" })
	s.pin("shop", nil)
	s.release("shop", "1.2.0")
	s.deploy("shop")
	s.Expect(s.history("shop")).To(HaveLen(3))
}
