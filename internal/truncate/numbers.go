// SPDX-License-Identifier: Apache-2.0

package truncate

import "regexp"

// number matches a number, also as a part of a name.
var number = regexp.MustCompile(`[0-9]+`)

// SameButNumbers reports whether two texts are equal except for numbers: durations, counts,
// and names of temporary files. While a program tries again and again for the same cause,
// that is not a change.
func SameButNumbers(a, b string) bool {
	return SameButDurations(a, b) || number.ReplaceAllString(a, "0") == number.ReplaceAllString(b, "0")
}
