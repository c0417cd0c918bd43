// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/schedule"
)

// longest returns schedules that are as long as they may be. Each is the worst case of
// another part of the search.
func longest() map[string]*v1alpha1.RolloutScheduleSpec {
	fill := func(rule func(n int) string, first ...string) *v1alpha1.RolloutScheduleSpec {
		spec := allow("Europe/Berlin", first...)
		for n := range schedule.MaxRules - len(first) - 1 { // one is left for an exception
			spec.Rules = append(spec.Rules, allow("", rule(n)).Rules...)
		}
		return spec
	}
	date := func(days int) string {
		return time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC).AddDate(0, 0, days).Format(time.DateOnly)
	}
	holiday := func(n int) string { return date(25*n) + ".." + date(25*n) }
	return map[string]*v1alpha1.RolloutScheduleSpec{
		"always active, with holidays": fill(holiday, ""),
		"working hours, with holidays": fill(holiday, "08:00-17:00 Mon,Tue,Wed,Thu,Fri"),
		"two halves, with ranges that overlap": fill(func(n int) string {
			return fmt.Sprintf("%02d:%02d-%02d:59 %s..%s", n%24, n%60, n%24, date(30*n), date(30*200+30*n))
		}, "00:00-12:00", "12:00-00:00"),
		"each minute of the day, with holidays": fill(func(n int) string {
			if n%2 == 0 {
				return holiday(n)
			}
			start := time.Date(2026, 1, 1, 0, 1440*(n/2)/99, 0, 0, time.UTC)
			return start.Format("15:04") + "-" + start.Add(15*time.Minute).Format("15:04")
		}),
		"halves of months, with windows that overlap": fill(func(n int) string {
			return fmt.Sprintf("%02d:%02d-%02d:59 days:%d,-%d", n%24, n%60, n%24, 1+n%31, 1+n%29)
		}, "days:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15", "days:16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31"),
		"parts of each day, of all days but few": fill(func(n int) string {
			if n < 99 {
				return fmt.Sprintf("%02d:%02d-%02d:%02d days:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
					1440*n/99/60, 1440*n/99%60, (1440*n/99+15)/60%24, (1440*n/99+15)%60)
			}
			return fmt.Sprintf("%02d:00-12:00/Mon Fri every:%d/2020-01-01", n%24, 2+n%51)
		}),
		"never, by exceptions": except(fill(func(n int) string {
			return fmt.Sprintf("09:00-17:00 %s every:%d/%s", []string{"Mon", "Tue", "Wed"}[n%3], 2+n%51, date(-n))
		}), "08:00-18:00"),
		"one range after the other": fill(func(n int) string { return date(9*n) + ".." + date(9*n+8) }),
	}
}

// TestLongestSchedulesAreEvaluatedQuickly: whoever writes a schedule must not delay the Rollouts
// of others. The measure is what this machine needs to name the days of forty years, once.
// BenchmarkAt says how long it takes.
func TestLongestSchedulesAreEvaluatedQuickly(t *testing.T) {
	now := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	pace := quickest(func() {
		for day := range 40 * 366 {
			_ = now.AddDate(0, 0, day).Weekday()
		}
	})
	for name, spec := range longest() {
		s := parse(t, spec)
		took := quickest(func() { s.At(now) })
		t.Logf("%s: %.1f", name, took.Seconds()/pace.Seconds())
		if took > mayTake(spec)*pace {
			t.Errorf("%s: %s, the days alone %s", name, took, pace)
		}
	}
}

// mayTake returns more for rules by days of the month and by cycles of weeks: to find that
// they never change, each day of forty years is looked at.
func mayTake(spec *v1alpha1.RolloutScheduleSpec) time.Duration {
	for _, r := range spec.Rules {
		if len(r.DaysOfMonth) > 0 || r.EveryWeeks != nil {
			return 100
		}
	}
	return 10
}

// quickest returns the shortest time that something takes.
func quickest(do func()) time.Duration {
	best := time.Hour
	for range 20 {
		began := time.Now()
		do()
		best = min(best, time.Since(began))
	}
	return best
}

// The search of the test looks at each of many rules, so that a few moments must do.
func TestLongestSchedulesChangeWhenASearchSays(t *testing.T) {
	now := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	for name, spec := range longest() {
		t.Run(name, func(t *testing.T) {
			check(t, spec, load(t, spec.Timezone), now)
		})
	}
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("of any rules %d", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			data := make([]byte, 20+random.IntN(1000))
			for i := range data {
				data[i] = byte(random.Uint32())
			}
			spec := allow(fuzzedZones[seed%uint64(len(fuzzedZones))])
			spec.Rules = fuzzedRules(now, data, schedule.MaxRules)
			check(t, spec, load(t, spec.Timezone), now)
		})
	}
}

func BenchmarkAt(b *testing.B) {
	now := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	specs := longest()
	specs["tomorrow"] = allow("Europe/Berlin", "08:00-17:00 Mon,Tue,Wed,Thu,Fri")
	specs["far away"] = allow("Europe/Berlin", "2999-07-01..2999-07-01")
	specs["never"] = allow("Europe/Berlin", "06:00-18:00", "18:00-06:00", "2020-01-01..2020-01-02")
	for name, spec := range specs {
		b.Run(name, func(b *testing.B) {
			s, err := schedule.Parse(spec)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				s.At(now)
			}
		})
	}
}
