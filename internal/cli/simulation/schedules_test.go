// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"fmt"
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // to have the same zones on every machine

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/simulation"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/schedule"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// year is long enough to set every clock twice.
const year = 366 * 24 * time.Hour

func allow(zone, start, end string, days ...v1alpha1.DayOfWeek) v1alpha1.RolloutScheduleSpec {
	return v1alpha1.RolloutScheduleSpec{Action: v1alpha1.ScheduleAllow, Timezone: zone, Rules: []v1alpha1.ScheduleRule{
		{TimeRange: &v1alpha1.TimeRange{Start: start, End: end}, DaysOfWeek: days},
	}}
}

func deny(zone, start, end string, days ...v1alpha1.DayOfWeek) v1alpha1.RolloutScheduleSpec {
	spec := allow(zone, start, end, days...)
	spec.Action = v1alpha1.ScheduleDeny
	return spec
}

// A release that waits goes at the moment that a search through all minutes of the year
// finds, without the package that computes when a schedule opens.
func TestWaitingReleasesGoWhenEveryScheduleIsOpen(t *testing.T) {
	for name, specs := range map[string][]v1alpha1.RolloutScheduleSpec{
		"open overnight":                 {allow("Europe/Berlin", "22:00", "06:00")},
		"open on the nights of workdays": {allow("Europe/Berlin", "22:00", "06:00", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday")},
		"open in an hour that is skipped once, and comes twice once": {allow("Europe/Berlin", "02:15", "02:45")},
		"closed in an hour that is skipped once, and comes twice once": {
			allow("America/New_York", "00:30", "03:15"), deny("America/New_York", "01:20", "02:40"),
		},
		"open overnight, and closed on weekends elsewhere": {
			allow("Europe/Berlin", "22:00", "06:00"), deny("America/New_York", "23:15", "02:30", "Saturday", "Sunday"),
		},
		"clocks that are set by half an hour": {
			allow("Australia/Lord_Howe", "20:10", "02:20"), deny("Asia/Kathmandu", "00:00", "07:15", "Sunday"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			events := releasesOfAYear()
			in := shop(t, fixture.MakeRollout("shop").Retention(1, 5), "1.0.0", func(in *promotion.Input) { in.Targets.All = nil })
			result, err := simulation.Run(in, simulation.Assumptions{
				Schedules: windows(t, specs), Events: events, Until: fixture.Noon.Add(year),
			})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, step := range result.Steps {
				got = append(got, step.At.Format(time.RFC3339)+" "+step.Current.Version.Tag)
			}
			if len(got) < 100 {
				t.Errorf("only %d releases go", len(got))
			}
			if diff := cmp.Diff(search(t, specs, events), got); diff != "" {
				t.Errorf("promotions (-search +simulation):\n%s", diff)
			}
		})
	}
}

// releasesOfAYear appear at all hours of the day, and each half hour while clocks are set.
func releasesOfAYear() (all []simulation.Event) {
	next := func(at time.Time) {
		all = append(all, simulation.Event{At: at, Change: appears(fmt.Sprintf("1.%d.0", len(all)+1))})
	}
	set := []string{"2026-03-08", "2026-03-29", "2026-04-04", "2026-10-03", "2026-10-25", "2026-11-01"}
	for at := fixture.Noon; at.Before(fixture.Noon.Add(year)); at = at.Add(24*time.Hour - 37*time.Minute) {
		if !slices.Contains(set, at.Format(time.DateOnly)) {
			next(at)
			continue
		}
		for i := range 48 {
			next(at.Add(time.Duration(i) * 29 * time.Minute))
		}
	}
	return all
}

// windows evaluates the schedules as the controller does.
func windows(tb testing.TB, specs []v1alpha1.RolloutScheduleSpec) func(time.Time) []promotion.Window {
	tb.Helper()
	var parsed []*schedule.Schedule
	for i := range specs {
		s, err := schedule.Parse(&specs[i])
		if err != nil {
			tb.Fatal(err)
		}
		parsed = append(parsed, s)
	}
	return func(now time.Time) (all []promotion.Window) {
		for i, s := range parsed {
			state := s.At(now)
			all = append(all, promotion.Window{
				Schedule: fmt.Sprintf("RolloutSchedule %d", i), Open: state.Open, Message: state.String(), Until: state.Next,
			})
		}
		return all
	}
}

// search looks at each minute of the year: the newest release goes if every schedule is
// open.
func search(t *testing.T, specs []v1alpha1.RolloutScheduleSpec, events []simulation.Event) (all []string) {
	t.Helper()
	zones := make([]*time.Location, len(specs))
	for i := range specs {
		var err error
		if zones[i], err = time.LoadLocation(specs[i].Timezone); err != nil {
			t.Fatal(err)
		}
	}
	isOpen := func(at time.Time) bool {
		for i := range specs {
			if isActive(specs[i].Rules[0], at.In(zones[i])) != (specs[i].Action == v1alpha1.ScheduleAllow) {
				return false
			}
		}
		return true
	}
	var in promotion.Input
	waits := false
	for at := fixture.Noon; !at.After(fixture.Noon.Add(year)); at = at.Add(time.Minute) {
		for len(events) > 0 && !events[0].At.After(at) {
			events[0].Change(&in)
			events, waits = events[1:], true
		}
		if waits && isOpen(at) {
			all, waits = append(all, at.Format(time.RFC3339)+" "+in.Policy.Latest.Tag), false
		}
	}
	return all
}

// isActive looks only at the wall clock. A window belongs to the day on which it starts.
func isActive(rule v1alpha1.ScheduleRule, wall time.Time) bool {
	now, hours, day := wall.Format("15:04"), rule.TimeRange, wall.Weekday()
	switch overnight := hours.End <= hours.Start; {
	case overnight && now < hours.End:
		day = (day + 6) % 7
	case now < hours.Start, !overnight && now >= hours.End:
		return false
	}
	return len(rule.DaysOfWeek) == 0 || slices.Contains(rule.DaysOfWeek, v1alpha1.DayOfWeek(day.String()))
}
