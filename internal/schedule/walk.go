// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"iter"
	"slices"
)

// mostDays is how many days a walk looks at. In 40 years each date, 29 February included, comes
// on each day of the week.
const mostDays = 41 * 366

// walk moves from date to date. It looks at each of them, or leaves out whole weeks while
// these are alike.
type walk struct {
	*Schedule
	date
	// skipped is how many days it has left out before the date.
	skipped day
	// held returns those rules that count of a day's range of dates.
	held func(day) set
	// inRange are the rules that it has returned, which stay the same until the next break.
	inRange set
	// weekly is true if each week is the same for them.
	weekly bool
	// resting are rules that leave out the week.
	resting set
	next    day
	last    bool // there is no next break
	// until is the last date that must be looked at: weeks begin and end alike after a break
	// and the longest window, and one of them has passed.
	until day
}

// walkFrom yields dates until nothing changes any more, or [mostDays] of them. The first is one
// whose windows may contain the reading.
func (s *Schedule) walkFrom(at reading, held func(day) set) iter.Seq[*walk] {
	return func(yield func(*walk) bool) {
		w := &walk{Schedule: s, date: dateOf(at.day() - s.longest), held: held}
		w.pass()
		for range mostDays {
			if !yield(w) || !w.step() {
				return
			}
		}
	}
}

// starting returns the rules with a window that starts on the date.
func (w *walk) starting() set { return w.on(w.date).and(w.inRange).without(w.resting) }

// pass prepares for the dates after a break.
func (w *walk) pass() {
	w.inRange = w.held(w.day)
	w.weekly = w.inRange.and(w.changing) == set{}
	w.next, w.last = w.breakAfter(w.day)
	w.until = w.day + w.longest + daysPerWeek
	for weekday := range daysPerWeek {
		w.turn(weekday)
	}
}

// turn updates the rules whose weeks begin on a day of the week.
func (w *walk) turn(weekday int) {
	for _, i := range w.cycles[weekday] {
		w.resting.put(i, w.rules[i].rests(w.day))
	}
}

// step moves to the next date, and reports whether there is one.
func (w *walk) step() bool {
	w.date, w.skipped = w.tomorrow(), 0
	if w.weekly && w.day > w.until {
		if w.last {
			return false
		}
		w.skip((w.next - w.day) / daysPerWeek * daysPerWeek)
	}
	if !w.last && w.day == w.next {
		w.pass()
		return true
	}
	w.turn(int(w.weekday()))
	return true
}

func (w *walk) skip(days day) {
	if days > 0 {
		w.date, w.skipped = dateOf(w.day+days), days
	}
}

// breakAfter returns the first break after a day; last is true if there is none.
func (s *Schedule) breakAfter(d day) (next day, last bool) {
	i, _ := slices.BinarySearch(s.breaks, d+1)
	if i == len(s.breaks) {
		return 0, true
	}
	return s.breaks[i], false
}

// holding returns the rules whose range of dates contains the day.
func (s *Schedule) holding(d day) set {
	var all set
	for i := range s.rules {
		all.put(i, s.rules[i].holds(d))
	}
	return all
}

// lasting returns the rules whose range of dates contains the day, without those that are
// only active while another one of their kind is.
func (s *Schedule) lasting(d day) set {
	var all set
	var rules, exceptions reach
	for i := range s.rules {
		r := &s.rules[i]
		reach := &rules
		if r.exception {
			reach = &exceptions
		}
		all.put(i, r.holds(d) && reach.isExceededBy(r))
	}
	return all
}

// reach is how long windows of rules last that are in each week, by the day on which they
// start.
type reach [daysPerWeek]reading

// isExceededBy reports whether the window of a rule lasts longer on one of its days than
// those that start before. If it is in each week, it counts for the rules after it.
func (reach *reach) isExceededBy(r *rule) bool {
	longer := false
	for weekday, has := range r.weekdays {
		if !has || r.to[weekday] <= reach[weekday] {
			continue
		}
		longer = true
		if r.isWeekly() {
			reach[weekday] = r.to[weekday]
		}
	}
	return longer
}
