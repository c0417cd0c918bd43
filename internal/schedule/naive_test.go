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

// active follows the definition of one moment, word by word: it reads the wall clock and
// looks at no other day than the present one and the one before.
func active(spec *v1alpha1.RolloutScheduleSpec, zone *time.Location, t time.Time) bool {
	return slices.ContainsFunc(spec.Rules, func(r v1alpha1.ScheduleRule) bool {
		wall := t.In(zone)
		date := time.Date(wall.Year(), wall.Month(), wall.Day(), 12, 0, 0, 0, time.UTC)
		if hours := r.TimeRange; hours != nil {
			now := string([]byte{digit(wall.Hour() / 10), digit(wall.Hour()), ':', digit(wall.Minute() / 10), digit(wall.Minute())})
			switch overnight := hours.End <= hours.Start; {
			case !overnight && (now < hours.Start || now >= hours.End):
				return false
			case overnight && now < hours.End:
				date = date.AddDate(0, 0, -1) // yesterday's window is still active
			case overnight && now < hours.Start:
				return false
			}
		}
		if len(r.DaysOfWeek) > 0 && !slices.Contains(r.DaysOfWeek, v1alpha1.DayOfWeek(date.Weekday().String())) {
			return false
		}
		if r.DateRange != nil {
			today := date.Format(time.DateOnly)
			return r.DateRange.Start <= today && today <= r.DateRange.End
		}
		return true
	})
}

func digit(n int) byte { return byte('0' + n%10) }

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
