// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"iter"
	"slices"
	"time"
)

// lastYear is the last year that a serialized timestamp can have. A user who writes
// 9999-12-31 means for ever.
const lastYear = 9999

// widestOffset bounds the offset of the clocks of any zone from UTC.
const widestOffset = 26 * secondsPerHour

// nextTransition returns the first moment after now at which active changes; zero means
// never.
//
// Between two changes of the zone's offset the wall clock runs without a jump. So the
// answer is the first reading that differs, if the clock gets there before it is set
// again. If not, the search continues after the change.
func (s *Schedule) nextTransition(now time.Time, active bool) time.Time {
	now = now.Truncate(time.Second)
	for {
		shown := readingAt(now, s.zone)
		differs, found := s.firstUnlike(active, shown)
		flip := time.Unix(now.Unix()+int64(differs-shown), 0).UTC()
		_, set := now.In(s.zone).ZoneBounds()
		switch back := !set.IsZero() && readingAt(set, s.zone) < shown; {
		case found && (set.IsZero() || flip.Before(set)):
			return onTheWire(flip)
		case back:
			now = set
		case !found:
			return time.Time{} // no later reading differs either
		default:
			now = later(set, time.Unix(int64(differs)-2*widestOffset, 0))
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func onTheWire(t time.Time) time.Time {
	if t.Year() > lastYear {
		return time.Time{}
	}
	return t
}

// firstUnlike returns the first reading from the given one on at which the schedule is
// not active, or at which it is active if active is false; found is false if there is
// none. It ignores zones: here each reading comes once.
func (s *Schedule) firstUnlike(active bool, from reading) (at reading, found bool) {
	known := from // up to here the schedule has not changed
	for date := range s.datesFrom(from.day() - 1) {
		known += reading(date.skipped) * secondsPerDay
		for w := range date.windows() {
			switch {
			case w.to <= known:
			case !active:
				return max(known, w.from), true
			case w.from > known:
				return known, true
			default:
				known = w.to
			}
		}
		if active && known < (date.day+1).begins() {
			return known, true
		}
	}
	return 0, false
}

// date is a day on which the schedule may change.
type date struct {
	day
	// skipped is how many days were skipped before it.
	skipped day
	// rules are those whose range of dates holds the day.
	rules []*rule
}

// datesFrom yields the days on which the schedule may change. A day affects the next one
// only by its windows that last over midnight. So after a day and a week without a break
// each week ends like the one before, and whole weeks are skipped.
func (s *Schedule) datesFrom(first day) iter.Seq[date] {
	return func(yield func(date) bool) {
		until := first + 1 + daysPerWeek
		next, ok := s.nextBreak(first)
		rules := s.rulesOn(first)
		for d := first; ; d++ {
			if ok && next < d { // the break was the day before
				next, ok = s.nextBreak(d)
			}
			var skipped day
			if d > until {
				if !ok {
					return
				}
				skipped = (next - d) / daysPerWeek * daysPerWeek
				d += skipped
			}
			if ok && next-d < daysPerWeek {
				until = next + daysPerWeek
			}
			if ok && d == next {
				rules = s.rulesOn(d)
			}
			if !yield(date{d, skipped, rules}) {
				return
			}
		}
	}
}

// windows yields the windows that start on the day, in order.
func (d date) windows() iter.Seq[window] {
	return func(yield func(window) bool) {
		weekday := d.weekday()
		for _, r := range d.rules {
			if r.weekdays[weekday] && !yield(r.windowOn(d.day)) {
				return
			}
		}
	}
}

// rulesOn returns the rules whose range of dates holds the day, in the order of their
// windows, without those that are only active while another one is. They stay the same
// until the next break.
func (s *Schedule) rulesOn(d day) []*rule {
	var rules []*rule
	var reach [daysPerWeek]reading
	for _, r := range s.byStart {
		if r.holds(d) && r.extends(&reach) {
			rules = append(rules, r)
		}
	}
	return rules
}

// extends reports whether the window of the rule lasts longer, on one of its weekdays, than
// those that start before. It updates how long they last.
func (r *rule) extends(reach *[daysPerWeek]reading) bool {
	longer := false
	for weekday, has := range r.weekdays {
		if has && r.to > reach[weekday] {
			reach[weekday], longer = r.to, true
		}
	}
	return longer
}

// nextBreak returns the first break on or after a day.
func (s *Schedule) nextBreak(d day) (day, bool) {
	i, _ := slices.BinarySearch(s.breaks, d)
	if i == len(s.breaks) {
		return 0, false
	}
	return s.breaks[i], true
}
