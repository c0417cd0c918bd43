// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Each minute of a week is in one stretch, which says what the schedule says at that minute:
// also when clocks change, and over midnight.
func TestStretchesSayWhatTheScheduleSays(t *testing.T) {
	hours := func(start, end string) []v1alpha1.ScheduleRule {
		return []v1alpha1.ScheduleRule{{Name: "hours", TimeRange: &v1alpha1.TimeRange{Start: start, End: end}}}
	}
	for name, begins := range map[string]time.Time{
		"clocks go forward": time.Date(2026, 3, 25, 12, 0, 0, 0, time.UTC),
		"clocks go back":    time.Date(2026, 10, 21, 12, 0, 0, 0, time.UTC),
		"they do not":       time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
	} {
		for window, rules := range map[string][]v1alpha1.ScheduleRule{
			"in the day": hours("08:00", "17:30"), "over midnight": hours("22:00", "06:00"), "over the change": hours("02:15", "02:45"), "all day": hours("00:00", "00:00"),
		} {
			t.Run(name+", "+window, func(t *testing.T) {
				s, err := Parse(&v1alpha1.RolloutScheduleSpec{Rules: rules, Timezone: "Europe/Berlin", Action: v1alpha1.ScheduleAllow})
				if err != nil {
					t.Fatal(err)
				}
				until := begins.AddDate(0, 0, 7)
				all := s.Stretches(begins, until, 100)
				for i, at := 0, begins; at.Before(until); at = at.Add(time.Minute) {
					if to := all[i].To; !to.IsZero() && !at.Before(to) {
						i++
					}
					if all[i].Open != s.At(at).Open || at.Before(all[i].From) {
						t.Fatalf("%s is in %+v, and the schedule says %+v", at, all[i], s.At(at))
					}
				}
				if window == "all day" && len(all) != 1 {
					t.Errorf("there is a gap: %+v", all)
				}
			})
		}
	}
}

func TestStretchesAreCut(t *testing.T) {
	s, err := Parse(&v1alpha1.RolloutScheduleSpec{Rules: []v1alpha1.ScheduleRule{{TimeRange: &v1alpha1.TimeRange{Start: "08:00", End: "09:00"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if all := s.Stretches(time.Unix(0, 0), time.Unix(1e9, 0), 3); len(all) != 3 {
		t.Errorf("%d stretches", len(all))
	}
}

func TestClockChangesAreThoseOfTheZone(t *testing.T) {
	begins := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for zone, want := range map[string][]time.Time{
		"UTC": nil, "Europe/Berlin": {time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC), time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC)},
	} {
		s, err := Parse(&v1alpha1.RolloutScheduleSpec{Rules: []v1alpha1.ScheduleRule{{Name: "always"}}, Timezone: zone})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.ClockChanges(begins, begins.AddDate(1, 0, 0)), cmpopts.EquateApproxTime(0)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", zone, diff)
		}
	}
}
