// SPDX-License-Identifier: Apache-2.0

package create

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/schedule"
)

func TestWindowIsTheRuleThatUsersMean(t *testing.T) {
	workdays := []v1alpha1.DayOfWeek{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday"}
	for window, want := range map[string]v1alpha1.ScheduleRule{
		"Mon-Fri 08:00-17:00":                {DaysOfWeek: workdays, TimeRange: &v1alpha1.TimeRange{Start: "08:00", End: "17:00"}},
		"08:00-17:00  monday-FRIDAY":         {DaysOfWeek: workdays, TimeRange: &v1alpha1.TimeRange{Start: "08:00", End: "17:00"}},
		"Sat,Sun":                            {DaysOfWeek: []v1alpha1.DayOfWeek{"Saturday", "Sunday"}},
		"Sat-Mon,Sun":                        {DaysOfWeek: []v1alpha1.DayOfWeek{"Saturday", "Sunday", "Monday"}},
		"Fri 15:00-24:00":                    {DaysOfWeek: []v1alpha1.DayOfWeek{"Friday"}, TimeRange: &v1alpha1.TimeRange{Start: "15:00", End: "00:00"}},
		"2026-12-24":                         {DateRange: &v1alpha1.DateRange{Start: "2026-12-24", End: "2026-12-24"}},
		"2026-12-20..2027-01-03":             {DateRange: &v1alpha1.DateRange{Start: "2026-12-20", End: "2027-01-03"}},
		"2026-12-20/2027-01-03 Tues":         {DateRange: &v1alpha1.DateRange{Start: "2026-12-20", End: "2027-01-03"}, DaysOfWeek: []v1alpha1.DayOfWeek{"Tuesday"}},
		"22:00-06:00 2026-12-20..2026-12-20": {DateRange: &v1alpha1.DateRange{Start: "2026-12-20", End: "2026-12-20"}, TimeRange: &v1alpha1.TimeRange{Start: "22:00", End: "06:00"}},
	} {
		t.Run(window, func(t *testing.T) {
			want.Name = window
			got, err := rulesOf([]string{window})
			if diff := cmp.Diff([]v1alpha1.ScheduleRule{want}, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if _, err := schedule.Parse(&v1alpha1.RolloutScheduleSpec{RolloutSelector: &metav1.LabelSelector{}, Rules: got, Action: v1alpha1.ScheduleDeny}); err != nil {
				t.Errorf("it cannot be evaluated: %v", err)
			}
		})
	}
}

func TestWindowThatIsNoneIsRefused(t *testing.T) {
	for _, window := range []string{"", "at night", "Mo", "Mon-", "Mon Tue", "8-17", "08:00-17:00 18:00-19:00", "2026-12-20...2027-01-03", "always"} {
		if got, err := rulesOf([]string{window}); err == nil {
			t.Errorf("%q is %+v", window, got)
		}
	}
}
