// SPDX-License-Identifier: Apache-2.0

package truncate

import "regexp"

// duration matches a duration as Go prints it, for example 1m30.5s or 25.062501ms.
var duration = regexp.MustCompile(`\b(\d+(\.\d+)?(ns|µs|us|ms|s|m|h))+\b`)

// SameButDurations reports whether two texts are equal except for durations. A repeated
// attempt reports the same with another duration each time, and that is not a change.
func SameButDurations(a, b string) bool {
	return a == b || duration.ReplaceAllString(a, "") == duration.ReplaceAllString(b, "")
}
