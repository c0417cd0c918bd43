// SPDX-License-Identifier: Apache-2.0

package schedule

import "math"

// rule has at most one window that starts on a day.
type rule struct {
	name string
	// place is its position in the spec, where exceptions follow the rules.
	place int
	// exception is true if the schedule is not active while the rule is.
	exception bool
	// from is the start of its windows, counted from midnight of the day.
	from reading
	// to is their end, counted likewise, by the day of the week on which they start. It may be
	// up to a week after from.
	to [daysPerWeek]reading
	// weekdays are the days of the week that have the window.
	weekdays [daysPerWeek]bool
	// weeks, days and months limit it to a part of the calendar; empty does not limit it. What
	// is negative counts from the end.
	weeks, days, months []int
	// cycle is how many days after each other its weeks begin, and since is when the first
	// does; zero if each week counts.
	cycle, since day
	// first and last are the first and the last date that have it.
	first, last day
}

// Dates that do not limit a rule.
const (
	everBefore = day(math.MinInt64)
	everAfter  = day(math.MaxInt64)
)

func everyDay() rule {
	r := rule{first: everBefore, last: everAfter}
	for weekday := range r.weekdays {
		r.weekdays[weekday], r.to[weekday] = true, secondsPerDay
	}
	return r
}

// holds reports whether the range of dates of the rule contains the day.
func (r *rule) holds(d day) bool { return r.first <= d && d <= r.last }

// isWeekly reports whether each week in its range of dates has the same windows.
func (r *rule) isWeekly() bool {
	return len(r.weeks)+len(r.days)+len(r.months) == 0 && r.cycle == 0
}

// rests reports whether the day is in a week that the rule leaves out.
func (r *rule) rests(d day) bool {
	return r.cycle != 0 && (d-r.since)%r.cycle >= daysPerWeek
}

// window is an interval of readings without its end, counted from midnight of the day on
// which it starts.
type window struct {
	from, to  reading
	exception bool
}
