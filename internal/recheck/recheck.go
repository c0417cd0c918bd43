// SPDX-License-Identifier: Apache-2.0

// Package recheck says how long a reconciler sleeps until time alone may change
// something. It is pure.
package recheck

import "time"

// Overdue is the pause before a pass that is due already, so that none follows
// another at once for ever.
const Overdue = time.Second

// AfterConflict is how long a pass waits after its write was rejected because of another
// writer: the cache has to show what that one wrote. The watch nearly always wakes the
// reconciler earlier.
const AfterConflict = time.Second

// In is how long it is from now to a moment, and never so short that
// controller-runtime takes it for never. What was due before the pass began and is due
// still, the next pass cannot do at once either.
func In(at, begun, now time.Time) time.Duration {
	if !at.After(begun) {
		return Overdue
	}
	return max(at.Sub(now), time.Millisecond)
}
