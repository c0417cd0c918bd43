// SPDX-License-Identifier: Apache-2.0

package show

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// moment is how a time is shown to users: with the day of the week, because windows are
// about days, and with the zone.
const moment = "Mon 2 Jan 15:04 MST"

// Moment returns a time in a zone. The year is shown if it is not the one of now.
func Moment(t, now time.Time, zone *time.Location) string {
	t = t.In(zone)
	if t.Year() != now.In(zone).Year() {
		return t.Format("Mon 2 Jan 2006 15:04 MST")
	}
	return t.Format(moment)
}

// Exact returns a time in a zone with its seconds.
func Exact(t time.Time, zone *time.Location) string {
	return t.In(zone).Format("Mon 2 Jan 15:04:05 MST")
}

// Ago returns the time since then as kubectl does: "3h", "2d4h".
func Ago(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(t))
}

// Span returns a duration as kubectl does.
func Span(d time.Duration) string { return duration.HumanDuration(d) }
