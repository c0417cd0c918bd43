// SPDX-License-Identifier: Apache-2.0

package abuse

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/schedule"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// all selects the HealthChecks of the namespace, whatever their labels.
func all(spec *v1alpha1.RolloutSpec) {
	spec.HealthCheckSelector = &v1alpha1.HealthCheckSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "nobody/has-this", Operator: metav1.LabelSelectorOpDoesNotExist},
	}}
}

func TestHealthChecksByTheThousand(t *testing.T) {
	const checks, rollouts = 2_000, 12
	x := begin(t, fmt.Sprintf("creates %d Rollouts that each reset all of its %d HealthChecks", rollouts, checks))
	a := newAbuser(t)
	for i := range checks {
		check := a.Another(fmt.Sprint("check-", i)).HealthCheck()
		check.Annotations, check.Spec = nil, v1alpha1.HealthCheckSpec{}
		a.makes(check)
	}
	for i := range rollouts {
		app := a.Another(fmt.Sprint("shop-", i))
		a.makes(app.Flux(plane.Registry.Host())[1:]...)
		a.makes(app.Rollout(app.Baked(time.Hour, time.Hour), all))
		app.Publish(app.ConfigRelease("1.0.0"))
	}
	marks := func(check *v1alpha1.HealthCheck) (n int) {
		a.Read(check)
		for key := range check.Annotations {
			if strings.HasPrefix(key, v1alpha1.ResetAnnotationPrefix) {
				n++
			}
		}
		return n
	}
	first := a.Another("check-0").HealthCheck()
	env.Eventually(t, "resets of most Rollouts", func() (bool, string) {
		n := marks(first)
		return n > rollouts/2, fmt.Sprintf("%d have begun", n)
	})
	last := a.Another(fmt.Sprint("check-", checks-1)).HealthCheck()
	x.passes(rollouts*checks, "meanwhile most Rollouts reset them")
	env.Eventually(t, "all resets", func() (bool, string) {
		n := marks(last)
		return n == rollouts, fmt.Sprintf("%d have ended", n)
	})
}

func TestSchedulesOfManyRules(t *testing.T) {
	const schedules, rollouts = 50, 20
	x := begin(t, fmt.Sprintf("creates %d RolloutSchedules that are as long as they may be, and %d Rollouts that they select, again and again", schedules, rollouts))
	a := newAbuser(t)
	for i := range schedules {
		s := &v1alpha1.RolloutSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: fmt.Sprint("long-", i)}}
		s.Spec = v1alpha1.RolloutScheduleSpec{RolloutSelector: &metav1.LabelSelector{}, Action: v1alpha1.ScheduleAllow, Rules: longest()}
		a.makes(s)
	}
	for i := range rollouts {
		a.makes(a.Another(fmt.Sprint("shop-", i)).Rollout())
	}
	for round := range 5 {
		for i := range rollouts {
			a.changes(a.Another(fmt.Sprint("shop-", i)).Rollout(), fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, v1alpha1.ReconcileRequestAnnotation, round))
		}
	}
	x.passes(schedules*rollouts, fmt.Sprintf("each of %d rules", schedule.MaxRules))
}

// longest returns rules that make a schedule active at all times, so that the search for the
// end looks at each.
func longest() []v1alpha1.ScheduleRule {
	rules := []v1alpha1.ScheduleRule{{TimeRange: &v1alpha1.TimeRange{Start: "00:00", End: "12:00"}}, {TimeRange: &v1alpha1.TimeRange{Start: "12:00", End: "00:00"}}}
	for n := range schedule.MaxRules - len(rules) {
		start := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, 30*n)
		rules = append(rules, v1alpha1.ScheduleRule{
			TimeRange: &v1alpha1.TimeRange{Start: fmt.Sprintf("%02d:%02d", n%24, n%60), End: fmt.Sprintf("%02d:59", n%24)},
			DateRange: &v1alpha1.DateRange{Start: start.Format(time.DateOnly), End: start.AddDate(0, 0, 6000).Format(time.DateOnly)},
		})
	}
	return rules
}
