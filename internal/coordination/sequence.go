// SPDX-License-Identifier: Apache-2.0

// Package coordination decides which member may roll out next when only some may at a
// time. The packages below it decide for Deployments and for StatefulSets. This package
// contains their common part: the order of turns.
//
// All of it is pure: there is no client, no clock and no logger.
package coordination

import (
	"cmp"
	"slices"
	"time"
)

// Member is one of several objects that roll out in turn.
type Member struct {
	// Name identifies a member, and orders members that are equal otherwise.
	Name string
	// Halfway means that the member has begun to roll out and has not finished, or has
	// failed. No other member can begin before it has ended.
	Halfway bool
	// Progress orders the members that are halfway: the furthest one goes first.
	Progress int32
	// Order is set by users; a lower one goes first.
	Order int64
	// LastTurn is when the member last got the turn since the members had nothing to do;
	// zero if it did not get it. Members without a turn go first, and then the one that
	// has waited longest. So no member starves.
	LastTurn time.Time
}

// Next returns the member that gets the turn, of those that have something to roll out.
// It returns false if there are none.
func Next(waiting []Member) (Member, bool) {
	if len(waiting) == 0 {
		return Member{}, false
	}
	return slices.MinFunc(waiting, Compare), true
}

// Compare returns a negative number if a gets its turn before b.
func Compare(a, b Member) int {
	return cmp.Or(
		halfwayFirst(a, b),
		a.LastTurn.Compare(b.LastTurn),
		cmp.Compare(a.Order, b.Order),
		cmp.Compare(a.Name, b.Name),
	)
}

// halfwayFirst puts members that have begun first, and of those the furthest one.
func halfwayFirst(a, b Member) int {
	switch {
	case a.Halfway && b.Halfway:
		return cmp.Compare(b.Progress, a.Progress)
	case a.Halfway:
		return -1
	case b.Halfway:
		return 1
	}
	return 0
}
