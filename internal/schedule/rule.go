// SPDX-License-Identifier: Apache-2.0

package schedule

import "math"

// rule has at most one window a day.
type rule struct {
	name string
	// from and to bound the window, counted from midnight of the day on which it starts.
	// to may be up to 24 hours after from, and so on the next day.
	from, to reading
	// weekdays are the days of the week that have the window.
	weekdays [daysPerWeek]bool
	// first and last are the first and the last date that have it.
	first, last day
}

// Dates that do not limit a rule.
const (
	everBefore = day(math.MinInt64)
	everAfter  = day(math.MaxInt64)
)

func everyDay() rule {
	r := rule{to: secondsPerDay, first: everBefore, last: everAfter}
	for weekday := range r.weekdays {
		r.weekdays[weekday] = true
	}
	return r
}

// holds reports whether the range of dates of the rule contains the day.
func (r *rule) holds(d day) bool { return r.first <= d && d <= r.last }

// startsOn reports whether the rule has a window that starts on the day.
func (r *rule) startsOn(d day) bool {
	return r.holds(d) && r.weekdays[d.weekday()]
}

// window is an interval of readings without its end.
type window struct{ from, to reading }

func (r *rule) windowOn(d day) window {
	return window{from: d.begins() + r.from, to: d.begins() + r.to}
}

// activeAt reports whether the rule is active. It looks at the windows of the reading's
// own date and of the one before, which may last over midnight.
func (r *rule) activeAt(at reading) bool {
	for d := at.day() - 1; d <= at.day(); d++ {
		if w := r.windowOn(d); r.startsOn(d) && w.from <= at && at < w.to {
			return true
		}
	}
	return false
}
