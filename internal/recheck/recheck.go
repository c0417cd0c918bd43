// SPDX-License-Identifier: Apache-2.0

// Package recheck computes how long a reconciler sleeps until time alone may change
// something. Its functions are pure.
package recheck

import "time"

// Overdue is the pause before a pass that is already due. It avoids an endless loop of
// passes without a pause.
const Overdue = time.Second

// AtOnce is the pause before a pass that continues the one before: the shortest one that
// controller-runtime does not read as never. Meanwhile other objects have their turn.
const AtOnce = time.Millisecond

// AfterConflict is how long a pass waits after its write was rejected because of another
// writer: the cache must first receive the other write. The watch nearly always wakes the
// reconciler earlier.
const AfterConflict = time.Second

// In returns the duration from now to a time. It is never so short that
// controller-runtime reads it as never. If the time was due before the pass began and is
// still due, the next pass could not handle it at once either.
func In(at, begun, now time.Time) time.Duration {
	if !at.After(begun) {
		return Overdue
	}
	return max(at.Sub(now), AtOnce)
}
