// SPDX-License-Identifier: Apache-2.0

// Package schedule says when a RolloutSchedule is open, and when that changes.
//
// Everything is read off the clock on the wall in the schedule's zone. A window
// is [start, end) of its readings, and belongs to the day on which it starts: a
// reading that is skipped when clocks go forward does not occur, one that is
// repeated when they go back occurs twice.
//
//	schedule.go    what a schedule says at a moment
//	parse.go       from a spec to what can be evaluated, or what is wrong with it
//	rule.go        on which days a rule has which window
//	reading.go     what the clock on the wall shows
//	transition.go  when what it says changes next
package schedule

import (
	"fmt"
	"time"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Schedule is a spec that was parsed, and can be evaluated.
type Schedule struct {
	zone  *time.Location
	rules []rule
	// breaks are the days on which a rule's range of dates begins, or is just
	// over, in their order. Between two of them every week is like the next.
	breaks []day
	// allow is true if the schedule is open while active, and only then.
	allow bool
}

// State is what a schedule says at a moment.
type State struct {
	// Active is true while a rule is.
	Active bool
	// Rules names those that are active, in the order of the spec; one without
	// a name is called by its place, as in rules[0].
	Rules []string
	// Open is true if promotions may start.
	Open bool
	// Next is when Active, and with it Open, changes; zero is never.
	Next time.Time
}

// At evaluates the schedule.
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

// String tells people whether promotions may start, because of what, and until
// when: "closed by rule year-end until 2027-01-04T00:00:00Z".
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
		return text + " for good"
	}
	return fmt.Sprintf("%s until %s", text, s.Next.UTC().Format(time.RFC3339))
}
