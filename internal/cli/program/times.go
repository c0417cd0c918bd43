// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// TimeFormats are the forms of a time in the help of a flag.
const TimeFormats = `2h, 3d, 2006-01-02, "2006-01-02 15:04" in your zone, or RFC 3339`

// TimeOf parses a time of a flag: a span from now, with or without a plus; a date or a minute
// in the zone of the user; or RFC 3339.
func TimeOf(text string, now time.Time, zone *time.Location) (time.Time, error) {
	if text == "" {
		return now, nil
	}
	later, isLater := strings.CutPrefix(text, "+")
	if d, err := SpanOf(later); isLater || err == nil {
		return now.Add(d), err
	}
	for _, format := range []string{time.RFC3339, "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(format, text, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time; write %s", text, TimeFormats)
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

// SpanVar adds a flag for a duration that may be in days.
func SpanVar(flags *pflag.FlagSet, span *time.Duration, name string, usual time.Duration, usage string) {
	*span = usual
	flags.Var((*spanValue)(span), name, usage)
}

type spanValue time.Duration

func (v *spanValue) Set(text string) error {
	d, err := SpanOf(text)
	*v = spanValue(d)
	return err
}

// String returns nothing for no duration, so that the help shows no default.
func (v *spanValue) String() string {
	if *v == 0 {
		return ""
	}
	return time.Duration(*v).String()
}

func (*spanValue) Type() string { return "duration" }

// HoursPerDay is how many hours a day has in a forecast.
const HoursPerDay = 24

// longestSpan is about ten years. Nobody plans releases for longer.
const longestSpan = 3653 * HoursPerDay * time.Hour
