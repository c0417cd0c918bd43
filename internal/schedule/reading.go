// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

const (
	secondsPerDay  = 24 * 60 * 60
	daysPerWeek    = 7
	secondsPerHour = 60 * 60
)

// reading is what a wall clock shows, date included: the seconds since it showed
// 1970-01-01 00:00, on a calendar where each day has 24 hours.
type reading int64

// day is a date on the calendar, counted from 1970-01-01.
type day int64

// readingAt returns what the clock shows at a moment. Windows begin and end on whole
// seconds, so fractions do not matter.
func readingAt(t time.Time, zone *time.Location) reading {
	_, offset := t.In(zone).Zone()
	return reading(t.Unix() + int64(offset))
}

func (r reading) day() day {
	d := day(r / secondsPerDay)
	if r%secondsPerDay < 0 {
		d--
	}
	return d
}

// dayOf returns the date of a moment in UTC.
func dayOf(t time.Time) day { return reading(t.Unix()).day() }

// begins returns the day's first reading.
func (d day) begins() reading { return reading(d) * secondsPerDay }

func (d day) weekday() time.Weekday {
	const thursday = daysPerWeek + day(time.Thursday) // 1970-01-01 was a Thursday
	return time.Weekday((d%daysPerWeek + thursday) % daysPerWeek)
}
