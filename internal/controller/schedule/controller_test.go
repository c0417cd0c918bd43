// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

var team = map[string]string{"team": "shop"}

// shopOf returns a Rollout with labels.
func shopOf(name string, labels map[string]string) *v1alpha1.Rollout {
	rollout := fixture.MakeRollout(name).Obj()
	rollout.Labels = labels
	return rollout
}

func TestScheduleKeepsAGateForEachRolloutThatItSelects(t *testing.T) {
	for name, cluster := range map[string]bool{"RolloutSchedule": false, "ClusterRolloutSchedule": true} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopOf("shop", team), shopOf("cart", team), shopOf("other", nil))
			s.LabelNamespace("stage", s.Namespace)
			built := fixture.MakeSchedule("days").Selecting(team)
			var o client.Object = built.Obj()
			if cluster {
				o = built.Cluster(labelled("stage", s.Namespace))
			}
			c := s.follow(t, o)

			s.Expect(c.tick()).To(Equal(ctrl.Result{RequeueAfter: time.Hour}), "Noon is an hour before the end")
			s.Expect(s.Passing()).To(Equal([]string{"cart open", "shop open"}))
			prefix := ""
			if cluster {
				prefix = s.Namespace + "/"
			}
			gates := s.Gates()
			names := []string{prefix + gates[0].Name, prefix + gates[1].Name}
			got := c.read().Status
			s.Expect(got.ManagedGates).To(ConsistOf(names))
			got.ManagedGates, got.Conditions = nil, nil
			s.Expect(*got).To(Equal(v1alpha1.RolloutScheduleStatus{
				ObservedGeneration: 1, Active: true, ActiveRules: []string{"mornings"}, MatchingRollouts: 2,
				NextTransition: &metav1.Time{Time: fixture.Noon.Add(time.Hour).Local()},
			}))
			s.Expect(c.ready()).To(Equal(condition{
				metav1.ConditionTrue, v1alpha1.ScheduleOpenReason, "open by rule mornings until 2026-03-02T13:00:00Z"}))
			s.Expect(c.kstatus()).To(Equal(status.CurrentStatus))
			s.Expect(s.Events.Take()).To(BeEmpty(), "to be new is no transition")

			s.Pass(time.Hour)
			s.Expect(c.tick()).To(Equal(ctrl.Result{RequeueAfter: 19 * time.Hour}))
			s.Expect(s.Passing()).To(Equal([]string{"cart closed", "shop closed"}))
			got = c.read().Status
			got.ManagedGates, got.Conditions = nil, nil
			s.Expect(*got).To(Equal(v1alpha1.RolloutScheduleStatus{
				ObservedGeneration: 1, MatchingRollouts: 2, NextTransition: &metav1.Time{Time: fixture.Noon.Add(20 * time.Hour).Local()},
			}))
			s.Expect(s.Events.Take()).To(Equal([]fixture.Event{{
				On: o.GetName(), Type: corev1.EventTypeNormal, Reason: v1alpha1.ScheduleClosedReason, Message: "closed until 2026-03-03T08:00:00Z",
			}}))

			s.Relabel("cart", nil)
			s.Remove(&v1alpha1.Rollout{}, "shop")
			c.tick()
			s.Expect(s.Passing()).To(BeEmpty())
			s.Expect(c.read().Status.ManagedGates).To(BeEmpty())
			s.Expect(c.read().Status.MatchingRollouts).To(BeZero())
		})
	}
}

func TestDenyingScheduleIsClosedWhileItIsActive(t *testing.T) {
	s := open(t, shopOf("shop", nil))
	c := s.follow(t, fixture.MakeSchedule("freeze").Deny().Obj())
	c.tick()
	s.Expect(s.Passing()).To(Equal([]string{"shop closed"}))
	s.Expect(c.ready()).To(Equal(condition{
		metav1.ConditionTrue, v1alpha1.ScheduleClosedReason, "closed by rule mornings until 2026-03-02T13:00:00Z"}))
	s.Pass(time.Hour)
	c.tick()
	s.Expect(s.Passing()).To(Equal([]string{"shop open"}))
	s.Expect(s.Events.Take()).To(ConsistOf(HaveField("Reason", v1alpha1.ScheduleOpenReason)))
}

func TestSettledScheduleWritesNothing(t *testing.T) {
	s := open(t, shopOf("cart", nil), shopOf("shop", nil))
	c := s.follow(t, fixture.MakeSchedule("days").Obj())
	c.tick()
	s.Expect(s.Wire.Writes()).To(ConsistOf(
		HavePrefix("create RolloutGate schedule-gate-days-"), HavePrefix("create RolloutGate schedule-gate-days-"), "patch RolloutSchedule/status days"))
	s.Wire.Forget()
	c.tick()
	s.Pass(time.Minute)
	c.tick()
	c.restart()
	c.tick()
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	s.Pass(time.Hour)
	c.tick()
	s.Expect(s.Wire.Writes()).To(HaveLen(3), "each gate, and the status")
	s.Expect(s.Events.Take()).To(HaveLen(1))
}

func TestScheduleThatNeverChangesSetsNoTimer(t *testing.T) {
	over := v1alpha1.ScheduleRule{Name: "over", DateRange: &v1alpha1.DateRange{Start: "2020-01-01", End: "2020-12-31"}}
	s := open(t, shopOf("shop", nil))
	c := s.follow(t, fixture.MakeSchedule("past").Deny().Rules(over).Obj())
	s.Expect(c.tick()).To(Equal(ctrl.Result{}))
	s.Expect(c.read().Status.NextTransition).To(BeNil())
	s.Expect(c.ready().Message).To(Equal("open (no end time)"))
}

func TestScheduleFollowsTheClocksThatAreSet(t *testing.T) {
	// On 29 March 2026 the clocks in Berlin go from 02:00 to 03:00.
	night := v1alpha1.ScheduleRule{TimeRange: &v1alpha1.TimeRange{Start: "02:30", End: "04:00"}}
	s := open(t, shopOf("shop", nil))
	s.Pass(time.Date(2026, time.March, 28, 12, 0, 0, 0, time.UTC).Sub(fixture.Noon))
	c := s.follow(t, fixture.MakeSchedule("night").Zone("Europe/Berlin").Rules(night).Obj())
	s.Expect(c.tick()).To(Equal(ctrl.Result{RequeueAfter: 13 * time.Hour}))
	s.Pass(13*time.Hour - time.Second)
	s.Expect(c.tick()).To(Equal(ctrl.Result{RequeueAfter: time.Second}))
	s.Expect(s.Passing()).To(Equal([]string{"shop closed"}))
	s.Pass(time.Second)
	s.Expect(c.tick()).To(Equal(ctrl.Result{RequeueAfter: time.Hour}))
	s.Expect(s.Passing()).To(Equal([]string{"shop open"}))
	s.Pass(time.Hour)
	s.Expect(c.tick()).To(Equal(ctrl.Result{RequeueAfter: 22*time.Hour + 30*time.Minute}))
	s.Expect(s.Passing()).To(Equal([]string{"shop closed"}))
}

func TestScheduleThatCannotBeEvaluatedIsClosedUntilItIsFixed(t *testing.T) {
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Is"}}}
	for name, tt := range map[string]struct {
		spoil   func(gather.Schedule)
		message string
	}{
		"a zone that does not exist": {
			func(o gather.Schedule) { o.Spec.Timezone = "Mars/Olympus" },
			`spec.timezone "Mars/Olympus" is not a zone of the IANA database, such as Europe/Berlin`,
		},
		"the machine's own zone": {
			func(o gather.Schedule) { o.Spec.Timezone = "Local" },
			`spec.timezone "Local" depends on the machine: name a zone, such as Europe/Berlin`,
		},
		"a date that does not exist": {
			func(o gather.Schedule) {
				o.Spec.Rules[0].DateRange = &v1alpha1.DateRange{Start: "2026-02-30", End: "2026-03-30"}
			},
			`spec.rules[0] (mornings): dateRange.start "2026-02-30" is not a day of the calendar: write YYYY-MM-DD`,
		},
		"a range that ends before it begins": {
			func(o gather.Schedule) {
				o.Spec.Rules[0].DateRange = &v1alpha1.DateRange{Start: "2026-03-03", End: "2026-03-01"}
			},
			`spec.rules[0] (mornings): dateRange.end 2026-03-01 is before its start 2026-03-03`,
		},
		"days that no month has": {
			func(o gather.Schedule) {
				o.Spec.Rules[0].Months, o.Spec.Rules[0].DaysOfMonth = []v1alpha1.Month{"February"}, []v1alpha1.DayOfMonth{30}
			},
			`spec.rules[0] (mornings): daysOfMonth: none of the months has one of these days`,
		},
		"an exception on a date that does not exist": {
			func(o gather.Schedule) {
				o.Spec.Exceptions = []v1alpha1.ScheduleRule{{EveryWeeks: &v1alpha1.EveryWeeks{Count: 2, Since: "2026-02-30"}}}
			},
			`spec.exceptions[0]: everyWeeks.since "2026-02-30" is not a day of the calendar: write YYYY-MM-DD`,
		},
		"a selector of Rollouts": {
			func(o gather.Schedule) { o.Spec.RolloutSelector = bad },
			`spec.rolloutSelector cannot be used: "Is" is not a valid label selector operator`,
		},
		"a selector of namespaces": {
			func(o gather.Schedule) { o.Object.(*v1alpha1.ClusterRolloutSchedule).Spec.NamespaceSelector = bad },
			`spec.namespaceSelector cannot be used: "Is" is not a valid label selector operator`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopOf("shop", team))
			s.LabelNamespace("stage", s.Namespace)
			c := s.follow(t, fixture.MakeSchedule("days").Selecting(team).Cluster(labelled("stage", s.Namespace)))
			c.tick()
			s.Expect(s.Passing()).To(Equal([]string{"shop open"}))

			good := c.read()
			c.edit(tt.spoil)
			s.Expect(c.tick()).To(Equal(ctrl.Result{}))
			s.Expect(s.Passing()).To(Equal([]string{"shop closed"}))
			want := condition{metav1.ConditionFalse, v1alpha1.InvalidScheduleReason, "closed: " + tt.message}
			s.Expect(c.ready()).To(Equal(want))
			s.Expect(c.kstatus()).To(Equal(status.FailedStatus))
			s.Expect(s.Events.Take()).To(Equal([]fixture.Event{
				{On: c.object.GetName(), Type: corev1.EventTypeWarning, Reason: want.Reason, Message: want.Message}}))
			s.Wire.Forget()
			s.Pass(time.Minute)
			c.tick()
			s.Expect(s.Wire.Writes()).To(BeEmpty(), "what stays as it is keeps its time")

			c.edit(func(o gather.Schedule) {
				o.Object.(*v1alpha1.ClusterRolloutSchedule).Spec = good.Object.(*v1alpha1.ClusterRolloutSchedule).Spec
			})
			c.tick()
			s.Expect(s.Passing()).To(Equal([]string{"shop open"}))
			s.Expect(c.kstatus()).To(Equal(status.CurrentStatus))
		})
	}
}

func TestExceptionIsInTheStatus(t *testing.T) {
	s := open(t, shopOf("shop", nil))
	schedule := fixture.MakeSchedule("freeze").Deny().Rules(v1alpha1.ScheduleRule{Name: "year-end"}).Obj()
	schedule.Spec.Exceptions = []v1alpha1.ScheduleRule{{Name: "hotfixes", TimeRange: &v1alpha1.TimeRange{Start: "10:00", End: "13:00"}}}
	c := s.follow(t, schedule)
	s.Expect(c.tick()).To(Equal(ctrl.Result{RequeueAfter: time.Hour}))
	s.Expect(s.Passing()).To(Equal([]string{"shop open"}))
	s.Expect(c.read().Status).To(And(HaveField("Active", false), HaveField("ActiveRules", BeEmpty()), HaveField("ActiveExceptions", []string{"hotfixes"})))
	s.Expect(c.ready().Message).To(Equal("open by exception hotfixes until 2026-03-02T13:00:00Z"))
	s.Pass(time.Hour)
	c.tick()
	s.Expect(c.read().Status).To(And(HaveField("Active", true), HaveField("ActiveRules", []string{"year-end"}), HaveField("ActiveExceptions", BeEmpty())))
	s.Expect(c.ready().Message).To(Equal("closed by rule year-end until 2026-03-03T10:00:00Z"))
}

func TestSchemaRefusesRulesThatCannotBe(t *testing.T) {
	s := open(t)
	friday := []v1alpha1.DayOfWeek{"Friday"}
	refuses := func(want string, rules, exceptions []v1alpha1.ScheduleRule) {
		t.Helper()
		schedule := fixture.MakeSchedule("days").Rules(rules...)
		for _, o := range []client.Object{schedule.Obj(), schedule.Cluster(nil)} {
			spec := gather.ScheduleOf(o).Spec
			spec.Exceptions = exceptions
			if o.SetGenerateName("days-"); o.GetNamespace() != "" {
				o.SetNamespace(s.Namespace)
			}
			o.SetName("")
			err := s.Create(s.Ctx, o, client.DryRunAll)
			if want == "" {
				s.Expect(err).NotTo(HaveOccurred())
				continue
			}
			s.Expect(err).To(MatchError(ContainSubstring(want)))
		}
	}
	for want, rule := range map[string]v1alpha1.ScheduleRule{
		"": {
			DaysOfWeek: friday, WeeksOfMonth: []v1alpha1.WeekOfMonth{1, -5}, DaysOfMonth: []v1alpha1.DayOfMonth{31, -31},
			Months: []v1alpha1.Month{"May"}, EveryWeeks: &v1alpha1.EveryWeeks{Count: 52, Since: "2026-03-02"},
			TimeRange: &v1alpha1.TimeRange{Start: "18:00", End: "06:00", EndDay: "Monday"},
		},
		"weeksOfMonth needs daysOfWeek: it selects the first Friday, or the last": {WeeksOfMonth: []v1alpha1.WeekOfMonth{1}},
		"weeks of a month count from 1, or from -1 for the last week":             {DaysOfWeek: friday, WeeksOfMonth: []v1alpha1.WeekOfMonth{0}},
		"should be less than or equal to 5":                                       {DaysOfWeek: friday, WeeksOfMonth: []v1alpha1.WeekOfMonth{6}},
		"days of a month count from 1, or from -1 for the last day":               {DaysOfMonth: []v1alpha1.DayOfMonth{0}},
		"should be greater than or equal to -31":                                  {DaysOfMonth: []v1alpha1.DayOfMonth{-32}},
		`supported values: "January"`:                                             {Months: []v1alpha1.Month{"Jan"}},
		"count in body should be greater than or equal to 2":                      {EveryWeeks: &v1alpha1.EveryWeeks{Count: 1, Since: "2026-03-02"}},
		"since in body should match":                                              {EveryWeeks: &v1alpha1.EveryWeeks{Count: 2, Since: "monday"}},
		`supported values: "Monday"`:                                              {TimeRange: &v1alpha1.TimeRange{Start: "18:00", End: "06:00", EndDay: "Mon"}},
	} {
		refuses(want, []v1alpha1.ScheduleRule{rule}, nil)
		refuses(want, []v1alpha1.ScheduleRule{{}}, []v1alpha1.ScheduleRule{rule})
	}
	refuses("", make([]v1alpha1.ScheduleRule, 100), make([]v1alpha1.ScheduleRule, 100))
	refuses("rules and exceptions may be up to 200 together", make([]v1alpha1.ScheduleRule, 100), make([]v1alpha1.ScheduleRule, 101))
}

func TestSelectedNamespaces(t *testing.T) {
	for name, tt := range map[string]struct {
		selector *metav1.LabelSelector
		want     []string
	}{
		"all, without a selector":  {nil, []string{"shop open"}},
		"all, with an empty one":   {&metav1.LabelSelector{}, []string{"shop open"}},
		"those with the label":     {labelled("kind", "schedules"), []string{"shop open"}},
		"and not those without it": {labelled("kind", "others"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopOf("shop", map[string]string{"only": "here"}))
			s.LabelNamespace("kind", "schedules")
			c := s.follow(t, fixture.MakeSchedule("days").Selecting(map[string]string{"only": "here"}).Cluster(tt.selector))
			c.tick()
			s.Expect(s.Passing()).To(Equal(tt.want))
			s.Remove(&v1alpha1.Rollout{}, "shop")
			c.tick()
			s.Expect(s.Passing()).To(BeEmpty())
		})
	}
}

func TestNamespaceThatLosesItsLabelLosesItsGates(t *testing.T) {
	s := open(t, shopOf("shop", nil))
	s.LabelNamespace("stage", s.Namespace)
	c := s.follow(t, fixture.MakeSchedule("days").Cluster(labelled("stage", s.Namespace)))
	c.tick()
	s.Expect(s.Passing()).To(HaveLen(1))
	s.LabelNamespace("stage", "")
	c.tick()
	s.Expect(s.Passing()).To(BeEmpty())
}

func TestSuspendedRolloutKeepsItsGate(t *testing.T) {
	rollout := fixture.MakeRollout("shop").Obj()
	rollout.Spec.Suspend = true
	s := open(t, rollout)
	c := s.follow(t, fixture.MakeSchedule("days").Obj())
	c.tick()
	s.Pass(time.Hour)
	c.tick()
	s.Expect(s.Passing()).To(Equal([]string{"shop closed"}))
}

func TestScheduleThatIsBeingDeletedLetsItsGatesGo(t *testing.T) {
	s := open(t, shopOf("shop", nil))
	o := fixture.MakeSchedule("days").Obj()
	o.Finalizers = []string{"example.com/slow"}
	c := s.follow(t, o)
	c.tick()
	s.Expect(s.Delete(s.Ctx, c.read().Object)).To(Succeed())
	s.Remove(s.Gate(), s.Gate().Name) // as the garbage collector does
	c.tick()
	s.Expect(s.Passing()).To(BeEmpty())
	c.edit(func(o gather.Schedule) { o.SetFinalizers(nil) })
	_, err := c.reconciler.Reconcile(s.Ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)})
	s.Expect(err).NotTo(HaveOccurred(), "that it is gone is no error")
}

func TestScheduleThatIsAskedForLooksAtOnceAndSaysSo(t *testing.T) {
	s := open(t, shopOf("shop", team))
	c := s.follow(t, fixture.MakeSchedule("days").Obj())
	c.tick()
	c.edit(func(t gather.Schedule) {
		t.SetAnnotations(map[string]string{v1alpha1.ReconcileRequestAnnotation: "token"})
	})
	c.tick()
	s.Expect(c.read().Status.LastHandledReconcileAt).To(Equal("token"))
	s.Wire.Forget()
	c.tick()
	s.Expect(s.Wire.Writes()).To(BeEmpty())
}
