// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

var fuzzedZones = []string{
	"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC", "Africa/Cairo", "America/Havana", "Asia/Kathmandu",
	"Pacific/Apia", "Africa/Casablanca", "America/St_Johns", "Pacific/Kiritimati", "Antarctica/Troll", "Europe/Dublin", "Asia/Gaza",
}

// FuzzSchedule compares a schedule with the definition at one moment, and its next
// transition with a search from minute to minute.
func FuzzSchedule(f *testing.F) {
	f.Add(uint8(0), int64(1774746000), []byte{7, 22, 0, 6, 0, 0b0111110}, []byte{})
	f.Add(uint8(2), int64(1775312000), []byte{1, 1, 45, 2, 15, 1, 2, 15, 2, 15}, []byte{1, 2, 0, 2, 30})
	f.Add(uint8(4), int64(1777000000), []byte{4, 3, 5, 2, 200, 1, 7, 2, 30, 2, 30, 65, 0, 1}, []byte{})
	f.Add(uint8(7), int64(1325000000), []byte{2, 32, 0}, []byte{})
	f.Add(uint8(0), int64(1774746000), []byte{8 + 16, 1, 1, 29}, []byte{8, 0, 11})                    // 29 February
	f.Add(uint8(6), int64(1774746000), []byte{32 + 2, 32, 1, 9}, []byte{16, 1, 31})                   // the last Friday, but not on the last day of a month
	f.Add(uint8(2), int64(1774746000), []byte{1 + 2 + 64 + 128, 18, 0, 6, 0, 1, 32, 0, 9}, []byte{0}) // every second weekend, but never
	f.Fuzz(func(t *testing.T, zone uint8, seconds int64, rules, exceptions []byte) {
		const first, span = 1_262_304_000, 40 * 366 * 24 * 3600 // 2010 to 2050
		now := time.Unix(first+(seconds%span+span)%span, 0).UTC()
		name := fuzzedZones[int(zone)%len(fuzzedZones)]
		spec := allow(name)
		spec.Rules, spec.Exceptions = fuzzedRules(now, rules, 4), fuzzedRules(now, exceptions, 3)
		check(t, spec, load(t, name), now)
	})
}

// fuzzedRules returns some rules from any bytes, with dates around now.
func fuzzedRules(now time.Time, data []byte, most int) []v1alpha1.ScheduleRule {
	next := func(n int) int {
		if len(data) == 0 {
			return 0
		}
		taken := int(data[0])
		data = data[1:]
		return taken % n
	}
	var rules []v1alpha1.ScheduleRule
	for len(data) > 0 && len(rules) < most {
		var r v1alpha1.ScheduleRule
		parts := next(256)
		if parts&1 != 0 {
			r.TimeRange = &v1alpha1.TimeRange{
				Start: fmt.Sprintf("%02d:%02d", next(24), next(60)), End: fmt.Sprintf("%02d:%02d", next(24), next(60)),
			}
			if parts&128 != 0 {
				r.TimeRange.EndDay = v1alpha1.DayOfWeek(time.Weekday(next(7)).String())
			}
		}
		if parts&2 != 0 {
			days := next(128)
			for weekday := range 7 {
				if days>>weekday&1 != 0 {
					r.DaysOfWeek = append(r.DaysOfWeek, v1alpha1.DayOfWeek(time.Weekday(weekday).String()))
				}
			}
		}
		if parts&4 != 0 {
			start := now.AddDate(0, 0, []int{1, 1, 1, 30}[next(4)]*(next(64)-32))
			r.DateRange = &v1alpha1.DateRange{Start: start.Format(time.DateOnly), End: start.AddDate(0, 0, next(40)).Format(time.DateOnly)}
		}
		if parts&8 != 0 {
			for range 1 + next(6) {
				r.Months = append(r.Months, v1alpha1.Month(time.Month(1+next(12)).String()))
			}
		}
		if parts&16 != 0 {
			most := []int{31, 29}[parts>>3&1] // each month has 29, at times
			for range 1 + next(15) {
				r.DaysOfMonth = append(r.DaysOfMonth, v1alpha1.DayOfMonth(fromStartOrEnd(next(2*most), most)))
			}
		}
		if parts&32 != 0 && len(r.DaysOfWeek) > 0 {
			for range 1 + next(4) {
				r.WeeksOfMonth = append(r.WeeksOfMonth, v1alpha1.WeekOfMonth(fromStartOrEnd(next(10), 5)))
			}
		}
		if parts&64 != 0 {
			since := now.AddDate(0, 0, next(256)-200)
			r.EveryWeeks = &v1alpha1.EveryWeeks{Count: int32(2 + next(51)%[]int{3, 51}[next(2)]), Since: since.Format(time.DateOnly)}
		}
		rules = append(rules, r)
	}
	return rules
}

// fromStartOrEnd returns 1 to most, or -1 to -most.
func fromStartOrEnd(n, most int) int {
	if n < most {
		return n + 1
	}
	return most - n - 1
}

func check(t *testing.T, spec *v1alpha1.RolloutScheduleSpec, zone *time.Location, now time.Time) {
	t.Helper()
	state := parse(t, spec).At(now)
	if state.Active != active(spec, zone, now) || state.Active != (len(state.Rules) > 0) {
		t.Fatalf("at %s active is %t by rules %v", now, state.Active, state.Rules)
	}
	same := func(at time.Time) {
		if active(spec, zone, at) != state.Active {
			t.Fatalf("at %s it is no longer active=%t, yet the next transition after %s is said to be %s", at, state.Active, now, state.Next)
		}
	}
	// Far away only samples are checked, and the last two days before the transition.
	end, near := state.Next, now.AddDate(0, 0, 9)
	if end.IsZero() {
		end = now.AddDate(9, 0, 0) // twice 29 February, but for 2100
	}
	minute := now.Truncate(time.Minute)
	for at := minute.Add(time.Minute); at.Before(end); at = at.Add(time.Minute) {
		if at.After(near) && at.Before(end.AddDate(0, 0, -2)) {
			at = at.Add(17*time.Hour + 11*time.Minute)
		}
		if at.Before(end) {
			same(at)
		}
	}
	if state.Next.IsZero() {
		return
	}
	same(state.Next.Add(-time.Second))
	if active(spec, zone, state.Next) == state.Active {
		t.Fatalf("nothing changes at %s, said to be the next transition after %s", state.Next, now)
	}
}

// The fuzz test checks single moments. This test checks each minute of the days on which
// clocks are set.
func TestEachMinuteAroundAChangeOfTheClock(t *testing.T) {
	specs := [][]string{{"02:30-03:30"}, {"01:30-02:15", "Sun"}, {"22:00-06:00 Sat", "12:00-12:00 2026-03-29..2026-03-29"}}
	for _, zone := range []string{"Europe/Berlin", "Australia/Lord_Howe", "Africa/Cairo"} {
		location := load(t, zone)
		for _, clockSet := range changesIn(location, 2026) {
			for _, rules := range specs {
				spec := allow(zone, rules...)
				from := clockSet.Add(-3 * time.Hour)
				edges := flips(spec, location, from, clockSet.AddDate(0, 0, 9))
				s := parse(t, spec)
				for now := from; now.Before(clockSet.Add(3 * time.Hour)); now = now.Add(time.Minute) {
					next := slices.IndexFunc(edges, now.Before)
					if next < 0 {
						t.Fatalf("the search has found no transition after %s", now)
					}
					if got := s.At(now).Next; !got.Equal(edges[next]) {
						t.Errorf("%s %v: after %s comes %s, got %s", zone, rules, now, edges[next], got)
					}
				}
			}
		}
	}
}

func changesIn(zone *time.Location, year int) []time.Time {
	var all []time.Time
	for t := time.Date(year, time.January, 1, 0, 0, 0, 0, time.UTC); t.Year() == year; t = t.Add(time.Minute) {
		_, before := t.In(zone).Zone()
		if _, after := t.Add(time.Minute).In(zone).Zone(); before != after {
			all = append(all, t.Add(time.Minute))
		}
	}
	return all
}
