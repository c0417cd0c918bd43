// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// Stretch is a time in which a schedule is open, or closed.
type Stretch struct {
	// From is the beginning, and To the end; zero if it never ends.
	From, To time.Time
	State
}

// Stretches returns the stretches from a time to another one, each as long as it lasts: the
// last may end later. There are at most so many.
func (s *Schedule) Stretches(from, until time.Time, most int) []Stretch {
	var all []Stretch
	for at := from; at.Before(until) && len(all) < most; {
		state := s.At(at)
		all = append(all, Stretch{From: at, To: state.Next, State: state})
		if at = state.Next; at.IsZero() {
			break
		}
	}
	return all
}

// ClockChanges returns when clocks change in the zone of the schedule, between two times.
func (s *Schedule) ClockChanges(from, until time.Time) []time.Time {
	var all []time.Time
	for _, end := from.In(s.zone).ZoneBounds(); !end.IsZero() && end.Before(until); _, end = end.ZoneBounds() {
		all = append(all, end)
	}
	return all
}

// Zone is the time zone of the schedule.
func (s *Schedule) Zone() *time.Location { return s.zone }
