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
//	rule.go        on which days a rule has which window
//	reading.go     the readings of the wall clock
//	transition.go  when the state changes next
package schedule

import (
	"fmt"
	"time"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Schedule is a parsed spec that can be evaluated.
type Schedule struct {
	zone  *time.Location
	rules []rule
	// byStart are the rules in the order in which their windows of a day start.
	byStart []*rule
	// breaks are the days on which a rule's range of dates begins, or has just ended, in
	// order. Between two of them every week is like the next.
	breaks []day
	// allow is true if the schedule is open while active, and only then.
	allow bool
}

// State is the state of a schedule at a moment.
type State struct {
	// Active is true while a rule is active.
	Active bool
	// Rules contains the names of the active rules, in the order of the spec. A rule
	// without a name is named by its place, as in rules[0].
	Rules []string
	// Open is true if promotions may start.
	Open bool
	// Next is when Active, and with it Open, changes; zero means never.
	Next time.Time
}

// At evaluates the schedule at a moment.
func (s *Schedule) At(now time.Time) State {
	at := readingAt(now, s.zone)
	var state State
	for i := range s.rules {
		if s.rules[i].activeAt(at) {
			state.Rules = append(state.Rules, s.rules[i].name)
		}
	}
	state.Active = len(state.Rules) > 0
	state.Open = state.Active == s.allow
	state.Next = s.nextTransition(now, state.Active)
	return state
}

// String returns a text for users: whether promotions may start, because of which rules,
// and until when: "closed by rule year-end until 2027-01-04T00:00:00Z".
func (s State) String() string {
	text := "closed"
	if s.Open {
		text = "open"
	}
	switch len(s.Rules) {
	case 0:
	case 1:
		text += " by rule " + s.Rules[0]
	default:
		text += " by rules " + truncate.List(s.Rules)
	}
	if s.Next.IsZero() {
		return text + " (no end time)"
	}
	return fmt.Sprintf("%s until %s", text, s.Next.UTC().Format(time.RFC3339))
}
