// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"iter"
	"math/bits"
	"time"
)

const (
	monthsPerYear = 12
	daysPerMonth  = 31
	// weeksPerMonth is how often a day of the week is in a month at most.
	weeksPerMonth = 5
)

// set is a set of rules, by their position in the order in which their windows start.
type set [(MaxRules + 63) / 64]uint64

func (s *set) add(i int) { s[i/64] |= 1 << (i % 64) }

func (s *set) put(i int, in bool) {
	s[i/64] &^= 1 << (i % 64)
	if in {
		s.add(i)
	}
}

func (s set) and(other set) set {
	for i := range s {
		s[i] &= other[i]
	}
	return s
}

func (s set) without(other set) set {
	for i := range s {
		s[i] &^= other[i]
	}
	return s
}

// each yields the rules of the set in order.
func (s set) each() iter.Seq[int] {
	return func(yield func(int) bool) {
		for word, left := range s {
			for ; left != 0; left &= left - 1 {
				if !yield(word*64 + bits.TrailingZeros64(left)) {
					return
				}
			}
		}
	}
}

// calendar says which rules have a window that starts on a date, apart from their ranges of
// dates and weeks that they leave out. A search looks at thousands of dates, so it must not
// look at each rule.
type calendar struct {
	months           [monthsPerYear]set
	days, lastDays   [daysPerMonth]set
	weeks, lastWeeks [daysPerWeek][weeksPerMonth]set
	// cycles are the rules that leave out weeks, by the day on which their weeks begin.
	cycles [daysPerWeek][]int
	// changing are the rules whose weeks are not all the same.
	changing set
}

func (c *calendar) add(i int, r *rule) {
	c.changing.put(i, !r.isWeekly())
	for month := range selected(monthsPerYear, r.months) {
		c.months[month].add(i)
	}
	for n := range selected(daysPerMonth, r.days) {
		c.days[n].add(i)
	}
	for n := range fromEnd(r.days) {
		c.lastDays[n].add(i)
	}
	for weekday, has := range r.weekdays {
		if has {
			c.addWeeks(i, weekday, r.weeks)
		}
	}
	if r.cycle != 0 {
		begins := r.since.weekday()
		c.cycles[begins] = append(c.cycles[begins], i)
	}
}

func (c *calendar) addWeeks(i, weekday int, weeks []int) {
	for n := range selected(weeksPerMonth, weeks) {
		c.weeks[weekday][n].add(i)
	}
	for n := range fromEnd(weeks) {
		c.lastWeeks[weekday][n].add(i)
	}
}

// selected yields positions, counted from zero, that are selected from the start; all if
// nothing limits them.
func selected(most int, wanted []int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for n := range most {
			if len(wanted) == 0 && !yield(n) {
				return
			}
		}
		for _, n := range wanted {
			if n > 0 && !yield(n-1) {
				return
			}
		}
	}
}

// fromEnd yields positions, counted from zero at the end.
func fromEnd(wanted []int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, n := range wanted {
			if n < 0 && !yield(-n-1) {
				return
			}
		}
	}
}

// on returns the rules that have a window that starts on the date.
func (c *calendar) on(d date) set {
	month, weekday := &c.months[d.month-1], d.weekday()
	first, last := &c.days[d.ofMonth-1], &c.lastDays[d.length-d.ofMonth]
	week, lastWeek := &c.weeks[weekday][(d.ofMonth-1)/daysPerWeek], &c.lastWeeks[weekday][(d.length-d.ofMonth)/daysPerWeek]
	var all set
	for i := range all {
		all[i] = month[i] & (first[i] | last[i]) & (week[i] | lastWeek[i])
	}
	return all
}

// date is a day with its place on the calendar.
type date struct {
	day
	year    int
	month   time.Month
	ofMonth int
	// length is how many days the month has.
	length int
}

func dateOf(d day) date {
	t := time.Unix(int64(d.begins()), 0).UTC()
	year, month, ofMonth := t.Date()
	return date{d, year, month, ofMonth, lengthOf(year, month)}
}

func (d date) tomorrow() date {
	switch {
	case d.ofMonth < d.length:
		return date{d.day + 1, d.year, d.month, d.ofMonth + 1, d.length}
	case d.month < time.December:
		return date{d.day + 1, d.year, d.month + 1, 1, lengthOf(d.year, d.month+1)}
	}
	return date{d.day + 1, d.year + 1, time.January, 1, daysPerMonth}
}

func lengthOf(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}
