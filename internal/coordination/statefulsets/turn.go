// SPDX-License-Identifier: Apache-2.0

package statefulsets

import (
	"slices"

	"github.com/fluxrollouts/rollout-controller/internal/coordination"
)

// turn returns the set that goes next: a set that has begun goes before one that has not,
// then a set that is not settled, because its pods are down already, and then by name. It
// returns nil if no set has anything to roll out.
func turn(sets []*tally) *tally {
	var waiting []coordination.Member
	for _, s := range sets {
		if s.mayReplace() && (s.hasOutdated() || s.halfway()) {
			waiting = append(waiting, s.member())
		}
	}
	next, ok := coordination.Next(waiting)
	if !ok {
		return nil
	}
	return sets[slices.IndexFunc(sets, func(s *tally) bool { return s.Name == next.Name })]
}

func (t *tally) member() coordination.Member {
	m := coordination.Member{Name: t.Name, Halfway: t.halfway()}
	if t.last {
		m.Progress = 1
	}
	if t.settled() {
		m.Order = 1
	}
	return m
}

// inTheWay returns the sets that must settle before pods of the given one may be
// replaced.
func inTheWay(sets []*tally, of *tally) []*tally {
	return slices.DeleteFunc(slices.Clone(sets), func(s *tally) bool { return s == of || s.settled() })
}

// rescue returns the set whose stuck pods are replaced while sets block each other. It
// does one set after the other: while pods of one set are changing, it returns only that
// set. It returns nil if there is none.
func rescue(sets []*tally) *tally {
	candidates := slices.DeleteFunc(slices.Clone(sets), func(s *tally) bool {
		return !s.mayReplace() || !slices.ContainsFunc(s.members, s.beyondHope)
	})
	for _, s := range sets {
		if !s.atRest() {
			candidates = slices.DeleteFunc(candidates, func(c *tally) bool { return c != s })
		}
	}
	return turn(candidates)
}

// Turn returns the name of the set that has the turn: the one whose pods are replaced now,
// or next once nothing is in the way. It is empty if no set has anything to roll out.
func Turn(g Group) string {
	if next := turn(tallies(g)); next != nil {
		return next.Name
	}
	return ""
}
