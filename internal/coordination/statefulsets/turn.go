// SPDX-License-Identifier: Apache-2.0

package statefulsets

import (
	"slices"

	"github.com/fluxrollouts/rollout-controller/internal/coordination"
)

// turn is the set that goes next: one that has begun before one that has not,
// then the one that is not ready, since its pods are down already, then by name.
// It is nil if no set has anything to roll out.
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

// inTheWay are the sets that must settle before pods of the given one may be
// replaced.
func inTheWay(sets []*tally, of *tally) []*tally {
	return slices.DeleteFunc(slices.Clone(sets), func(s *tally) bool { return s == of || s.settled() })
}

// rescue is the set whose stuck pods are replaced while sets are in the way of
// each other. It is one set after the other: while pods of one are on their way,
// only that one can be it. It is nil if there is none.
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
