// SPDX-License-Identifier: Apache-2.0

package program

import "time"

// realClock is the only place where the program reads the clock.
func realClock() time.Time { return time.Now() }
