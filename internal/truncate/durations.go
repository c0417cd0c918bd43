// SPDX-License-Identifier: Apache-2.0

package truncate

import "regexp"

// duration is one as Go prints it, such as 1m30.5s or 25.062501ms.
var duration = regexp.MustCompile(`\b(\d+(\.\d+)?(ns|µs|us|ms|s|m|h))+\b`)

// SameButDurations reports whether two texts say the same, but for how long it took.
// Who tries again and again says the same with another duration each time, and that is
// no news.
func SameButDurations(a, b string) bool {
	return a == b || duration.ReplaceAllString(a, "") == duration.ReplaceAllString(b, "")
}
