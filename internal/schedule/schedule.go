// SPDX-License-Identifier: Apache-2.0

// Package schedule computes when a RolloutSchedule is open, and when that changes.
//
// All times are those of the wall clock in the schedule's zone. A window is [start, end)
// of its readings, and belongs to the day on which it starts. A reading that is skipped
// when clocks go forward does not occur. One that is repeated when they go back occurs
// twice.
//
//	schedule.go    the state of a schedule at a moment
//	parse.go       from a spec to a Schedule, or to an error
//	rule.go        which window a rule has on its days
//	reading.go     the readings of the wall clock
//	calendar.go    which rules have a window on a date
//	walk.go        from date to date, without whole weeks that are alike
//	transition.go  when the state changes next
package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Schedule is a parsed spec that can be evaluated.
type Schedule struct {
	zone *time.Location
	// rules are the rules and exceptions, in the order in which their windows of a day start.
	rules []rule
	// windows are theirs, by the day of the week on which they start: a search looks at many.
	windows [daysPerWeek][]window
	// longest is how many days after its start a window ends at most.
	longest day
	calendar
	// breaks are the days on which a rule's range of dates begins, or has just ended, in
	// order. Between two of them every week is like the next, but for the calendar.
	breaks []day
	// allow is true if the schedule is open while active, and only then.
	allow bool
}

// State is the state of a schedule at a moment.
type State struct {
	// Active is true while a rule is active, and no exception.
	Active bool
	// Rules contains the names of the rules that make it active, in the order of the spec. A
	// rule without a name is named by its place, as in rules[0].
	Rules []string
	// Exceptions contains the names of those that keep rules from making it active.
	Exceptions []string
	// Open is true if promotions may start.
	Open bool
	// Next is when Active, and with it Open, changes; zero means never.
	Next time.Time
}

// At evaluates the schedule at a moment.
func (s *Schedule) At(now time.Time) State {
	var state State
	switch rules, exceptions := s.activeAt(readingAt(now, s.zone)); {
	case len(rules) > 0 && len(exceptions) > 0:
		state.Exceptions = exceptions
	case len(rules) > 0:
		state.Active, state.Rules = true, rules
	}
	state.Open = state.Active == s.allow
	state.Next = s.nextTransition(now, state.Active)
	return state
}

// activeAt returns the names of the rules and exceptions that are active.
func (s *Schedule) activeAt(at reading) (rules, exceptions []string) {
	for _, r := range s.windowsAt(at) {
		if r.exception {
			exceptions = append(exceptions, r.name)
			continue
		}
		rules = append(rules, r.name)
	}
	return rules, exceptions
}

// windowsAt returns the rules with a window that contains the reading, in the order of the
// spec.
func (s *Schedule) windowsAt(at reading) []*rule {
	var all []*rule
	for w := range s.walkFrom(at, s.holding) {
		if w.day > at.day() {
			break
		}
		for i := range w.starting().each() {
			window, since := s.windows[w.weekday()][i], at-w.day.begins()
			if window.from <= since && since < window.to {
				all = append(all, &s.rules[i])
			}
		}
	}
	slices.SortFunc(all, func(a, b *rule) int { return cmp.Compare(a.place, b.place) })
	return slices.Compact(all)
}

// String returns a text for users: whether promotions may start, because of which rules,
// and until when: "closed by rule year-end until 2027-01-04T00:00:00Z".
func (s State) String() string {
	text := "closed"
	if s.Open {
		text = "open"
	}
	text += by("rule", s.Rules) + by("exception", s.Exceptions)
	if s.Next.IsZero() {
		return text + " (no end time)"
	}
	return fmt.Sprintf("%s until %s", text, s.Next.UTC().Format(time.RFC3339))
}

func by(kind string, names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return " by " + kind + " " + names[0]
	}
	return " by " + kind + "s " + truncate.List(names)
}
