// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // to have the same zones on every machine

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/schedule"
)

// active follows the definition of one moment, word by word: it reads the wall clock, and
// looks at the windows that start today or in the eight days before.
func active(spec *v1alpha1.RolloutScheduleSpec, zone *time.Location, t time.Time) bool {
	wall := t.In(zone)
	today := time.Date(wall.Year(), wall.Month(), wall.Day(), 12, 0, 0, 0, time.UTC)
	now := wall.Hour()*60 + wall.Minute()
	isActive := func(r v1alpha1.ScheduleRule) bool {
		for back := range 9 {
			date := today.AddDate(0, 0, -back)
			start, end := windowOn(r.TimeRange, date)
			if now := now + back*24*60; start <= now && now < end && startsOn(r, date) {
				return true
			}
		}
		return false
	}
	return slices.ContainsFunc(spec.Rules, isActive) && !slices.ContainsFunc(spec.Exceptions, isActive)
}

// windowOn returns the window of a date in minutes from its midnight.
func windowOn(hours *v1alpha1.TimeRange, date time.Time) (start, end int) {
	if hours == nil {
		return 0, 24 * 60
	}
	start = minutes(hours.Start)
	for end = minutes(hours.End); ; end, date = end+24*60, date.AddDate(0, 0, 1) {
		if end > start && (hours.EndDay == "" || string(hours.EndDay) == date.Weekday().String()) {
			return start, end
		}
	}
}

func minutes(clock string) int {
	return (int(clock[0]-'0')*10+int(clock[1]-'0'))*60 + int(clock[3]-'0')*10 + int(clock[4]-'0')
}

func startsOn(r v1alpha1.ScheduleRule, date time.Time) bool {
	isDay := func(n v1alpha1.DayOfMonth) bool {
		if n > 0 {
			return date.Day() == int(n)
		}
		return sameMonth(date, -int(n)-1) && !sameMonth(date, -int(n))
	}
	isWeek := func(n v1alpha1.WeekOfMonth) bool {
		if n > 0 {
			return sameMonth(date, -7*int(n-1)) && !sameMonth(date, -7*int(n))
		}
		return sameMonth(date, 7*int(-n-1)) && !sameMonth(date, 7*int(-n))
	}
	switch today := date.Format(time.DateOnly); {
	case len(r.DaysOfWeek) > 0 && !slices.Contains(r.DaysOfWeek, v1alpha1.DayOfWeek(date.Weekday().String())):
		return false
	case len(r.Months) > 0 && !slices.Contains(r.Months, v1alpha1.Month(date.Month().String())):
		return false
	case len(r.DaysOfMonth) > 0 && !slices.ContainsFunc(r.DaysOfMonth, isDay):
		return false
	case len(r.WeeksOfMonth) > 0 && !slices.ContainsFunc(r.WeeksOfMonth, isWeek):
		return false
	case r.EveryWeeks != nil && !isOneOf(*r.EveryWeeks, date):
		return false
	case r.DateRange != nil:
		return r.DateRange.Start <= today && today <= r.DateRange.End
	}
	return true
}

func sameMonth(date time.Time, days int) bool {
	return date.AddDate(0, 0, days).Month() == date.Month()
}

// isOneOf looks at the weeks one after the other.
func isOneOf(weeks v1alpha1.EveryWeeks, date time.Time) bool {
	since, _ := time.Parse(time.DateOnly, weeks.Since)
	for week := since; !week.After(date); week = week.AddDate(0, 0, 7*int(weeks.Count)) {
		if date.Before(week.AddDate(0, 0, 7)) {
			return true
		}
	}
	return false
}

// flips searches minute by minute, and then second by second, for the moments at which
// the schedule changes.
func flips(spec *v1alpha1.RolloutScheduleSpec, zone *time.Location, from, to time.Time) []time.Time {
	var all []time.Time
	for t := from; t.Before(to); t = t.Add(time.Minute) {
		was := active(spec, zone, t)
		if was == active(spec, zone, t.Add(time.Minute)) {
			continue
		}
		for range 60 {
			t = t.Add(time.Second)
			if active(spec, zone, t) != was {
				all = append(all, t.UTC())
				break
			}
		}
		t = t.Truncate(time.Minute).Add(-time.Minute)
	}
	return all
}

// transitions returns the transitions that the schedule itself computes, one after the
// other.
func transitions(t *testing.T, spec *v1alpha1.RolloutScheduleSpec, from, to time.Time) []time.Time {
	t.Helper()
	s := parse(t, spec)
	var all []time.Time
	for at := s.At(from).Next; !at.IsZero() && !at.After(to); at = s.At(at).Next {
		all = append(all, at)
		if before := s.At(at.Add(-time.Nanosecond)); before.Active == s.At(at).Active || !before.Next.Equal(at) {
			t.Errorf("nothing changes at %s", at)
		}
	}
	return all
}

func parse(t *testing.T, spec *v1alpha1.RolloutScheduleSpec) *schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func load(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}
