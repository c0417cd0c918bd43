// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"math"
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
	var known search
	for {
		shown := readingAt(now, s.zone)
		if !known.answers(shown) {
			known = s.search(active, shown)
		}
		flip := time.Unix(now.Unix()+int64(known.differs-shown), 0).UTC()
		_, set := now.In(s.zone).ZoneBounds()
		switch back := !set.IsZero() && readingAt(set, s.zone) < shown; {
		case known.found && (set.IsZero() || flip.Before(set)):
			return onTheWire(flip)
		case back:
			now = set
		case !known.found:
			return time.Time{} // no later reading differs either
		default:
			now = later(set, time.Unix(int64(known.differs)-2*widestOffset, 0))
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

// search is the result of a search from a reading on: the first that differs, if one does.
type search struct {
	done    bool
	from    reading
	differs reading
	found   bool
}

// answers reports whether a search from another reading would have the same result.
func (s search) answers(from reading) bool {
	return s.done && s.from <= from && (!s.found || from <= s.differs)
}

// search looks for the first reading from the given one on at which the schedule is not
// active, or at which it is active if active is false. It ignores zones: here each reading
// comes once.
func (s *Schedule) search(active bool, from reading) search {
	c := coverage{active: active, at: from, rules: from, exceptions: from}
	for w := range s.walkFrom(from, s.lasting) {
		if c.skip(w.skipped); c.changesOn(w) {
			return search{done: true, from: from, differs: c.at, found: true}
		}
	}
	return search{done: true, from: from}
}

// coverage is how far windows that have started last. They are added in the order in which
// they start.
type coverage struct {
	// active is the state that lasts up to the reading at.
	active bool
	at     reading
	// rules and exceptions are the last ends of windows of each.
	rules, exceptions reading
}

// changesOn reports whether the state changes on a date, and moves to the change or to the
// end of the date.
func (c *coverage) changesOn(w *walk) bool {
	midnight := w.day.begins()
	windows := w.windows[w.weekday()]
	for i := range w.starting().each() {
		window := &windows[i]
		if c.changesBefore(midnight + window.from) {
			return true
		}
		c.add(midnight+window.to, window.exception)
	}
	return c.changesBefore((w.day + 1).begins())
}

func (c *coverage) add(end reading, exception bool) {
	if exception {
		c.exceptions = max(c.exceptions, end)
		return
	}
	c.rules = max(c.rules, end)
}

// skip leaves out days that end as they begin.
func (c *coverage) skip(days day) {
	by := reading(days) * secondsPerDay
	c.at, c.rules, c.exceptions = c.at+by, c.rules+by, c.exceptions+by
}

// changesBefore reports whether the state changes before a reading up to which no other
// window starts. It moves to the change, or else to the reading.
func (c *coverage) changesBefore(to reading) bool {
	if to <= c.at {
		return false
	}
	change := c.change()
	c.at = min(change, to)
	return change < to
}

// change returns when the state changes if no other window starts.
func (c *coverage) change() reading {
	allowed := max(c.at, c.exceptions)
	switch {
	case c.active && allowed > c.at:
		return c.at // an exception has started
	case c.active:
		return max(c.at, c.rules)
	case allowed < c.rules:
		return allowed
	}
	return math.MaxInt64
}
