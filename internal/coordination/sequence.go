// SPDX-License-Identifier: Apache-2.0

// Package coordination says who may roll out next where only one may at a time.
// The packages below it decide for Deployments and for StatefulSets; this one
// holds what both have in common: the order of turns.
//
// All of it is pure: there is no client, no clock and no logger.
package coordination

import (
	"cmp"
	"slices"
	"time"
)

// Member is one of several that roll out one at a time.
type Member struct {
	// Name tells members apart, and orders those that are equal otherwise.
	Name string
	// Halfway means that it has begun to roll out and has not finished, or has
	// failed. Nobody else can begin before it has ended.
	Halfway bool
	// Progress orders those that are halfway: the furthest along goes first.
	Progress int32
	// Order as wished by people; a lower one goes first.
	Order int64
	// LastTurn is when it was last given the turn since the members had nothing to
	// do; zero if it was not. Those that had no turn go first, and then whoever
	// has waited longest, so that nobody starves.
	LastTurn time.Time
}

// Next is the member whose turn it is among those that have something to roll
// out. It reports false if there are none.
func Next(waiting []Member) (Member, bool) {
	if len(waiting) == 0 {
		return Member{}, false
	}
	return slices.MinFunc(waiting, compare), true
}

func compare(a, b Member) int {
	return cmp.Or(
		halfwayFirst(a, b),
		a.LastTurn.Compare(b.LastTurn),
		cmp.Compare(a.Order, b.Order),
		cmp.Compare(a.Name, b.Name),
	)
}

// halfwayFirst puts those that have begun first, the furthest along before.
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
