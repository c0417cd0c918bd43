// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"strings"
	"time"
)

// TimeOf parses a time of a flag: RFC 3339, or "+2h" from now, or a local "2006-01-02 15:04".
func TimeOf(text string, now time.Time, zone *time.Location) (time.Time, error) {
	if text == "" {
		return now, nil
	}
	if later, isLater := strings.CutPrefix(text, "+"); isLater {
		d, err := SpanOf(later)
		return now.Add(d), err
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if t, err := time.ParseInLocation("2006-01-02 15:04", text, zone); err == nil {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("%q is no time; write 2006-01-02T15:04:05Z, \"2006-01-02 15:04\" in your zone, or +2h", text)
}

// SpanOf parses a duration as Go does, and days: "7d".
func SpanOf(text string) (time.Duration, error) {
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		if d, err := time.ParseDuration(days + "h"); err == nil && d.Abs() <= longestSpan/HoursPerDay {
			return HoursPerDay * d, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d.Abs() > longestSpan {
		return 0, fmt.Errorf("%q is no duration of at most ten years; write 30m, 2h or 7d", text)
	}
	return d, nil
}

// HoursPerDay is how many hours a day has in a forecast.
const HoursPerDay = 24

// longestSpan is about ten years. Nobody plans releases for longer.
const longestSpan = 3653 * HoursPerDay * time.Hour
