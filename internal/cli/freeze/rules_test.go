// SPDX-License-Identifier: Apache-2.0

package freeze_test

import (
	"testing"
	"time"
	_ "time/tzdata" // to have the same zones on every machine

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/cli/freeze"
	"github.com/fluxrollouts/rollout-controller/internal/schedule"
)

// at parses a time of RFC 3339, which says which of two equal readings of a clock is meant.
func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func TestScheduleIsClosedUntilTheEndAndOpenAfterwards(t *testing.T) {
	for name, tt := range map[string]struct{ zone, now, until string }{
		"on the same day":                           {"Europe/Berlin", "2026-11-21T14:05:09+01:00", "2026-11-21T18:30:00+01:00"},
		"in the minute that has begun":              {"Europe/Berlin", "2026-11-21T14:05:09+01:00", "2026-11-21T14:06:00+01:00"},
		"in some days":                              {"Europe/Berlin", "2026-11-21T14:05:09+01:00", "2026-11-24T06:00:00+01:00"},
		"at midnight in UTC":                        {"UTC", "2026-11-21T14:05:09Z", "2026-11-22T00:00:00Z"},
		"at midnight in UTC, days later":            {"UTC", "2026-11-21T14:05:09Z", "2026-11-25T00:00:00Z"},
		"at midnight of the user":                   {"America/New_York", "2026-11-21T22:00:00-05:00", "2026-11-22T00:00:00-05:00"},
		"a minute after midnight":                   {"UTC", "2026-11-21T23:59:59Z", "2026-11-22T00:01:00Z"},
		"at the end of the year":                    {"Europe/Berlin", "2026-12-20T00:00:00+01:00", "2027-01-04T08:00:00+01:00"},
		"on a leap day":                             {"UTC", "2028-02-28T10:00:00Z", "2028-02-29T12:00:00Z"},
		"when clocks go forward":                    {"Europe/Berlin", "2026-03-28T20:00:00+01:00", "2026-03-29T03:00:00+02:00"},
		"after clocks went forward":                 {"Europe/Berlin", "2026-03-29T01:59:00+01:00", "2026-03-29T08:15:00+02:00"},
		"in the hour that comes twice":              {"Europe/Berlin", "2026-10-24T20:00:00+02:00", "2026-10-25T02:30:00+02:00"},
		"in that hour, the second time":             {"Europe/Berlin", "2026-10-24T20:00:00+02:00", "2026-10-25T02:30:00+01:00"},
		"from the first to the second time":         {"America/New_York", "2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00"},
		"after clocks went back":                    {"America/New_York", "2026-10-31T12:00:00-04:00", "2026-11-01T08:00:00-05:00"},
		"where clocks are set by half an hour":      {"Australia/Lord_Howe", "2026-04-04T12:00:00+11:00", "2026-04-05T01:45:00+10:30"},
		"where the day of UTC is the one before":    {"Pacific/Kiritimati", "2026-11-21T08:00:00+14:00", "2026-11-22T08:00:00+14:00"},
		"where clocks differ by 45 minutes":         {"Asia/Kathmandu", "2026-11-21T05:00:00+05:45", "2026-11-22T05:45:00+05:45"},
		"after twenty years":                        {"UTC", "2016-12-31T10:00:00Z", "2036-12-31T23:59:00Z"},
		"when the last day of the calendar is over": {"UTC", "2026-11-21T14:05:09Z", "9999-12-31T23:59:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			zone, err := time.LoadLocation(tt.zone)
			if err != nil {
				t.Fatal(err)
			}
			now, until := at(t, tt.now), at(t, tt.until)
			f, err := freeze.New("x", now, until, zone)
			if err != nil {
				t.Fatal(err)
			}
			spec := f.Schedule("shop", &metav1.LabelSelector{}).Spec
			s, err := schedule.Parse(&spec)
			if err != nil {
				t.Fatal(err)
			}
			checkClosedUntil(t, s, now, until)
		})
	}
}

// checkClosedUntil looks at each minute of the first and the last two days, and of the
// days after the end.
func checkClosedUntil(t *testing.T, s *schedule.Schedule, now, until time.Time) {
	t.Helper()
	const near = 49 * time.Hour
	if state := s.At(now); state.Open || !state.Next.Equal(until) {
		t.Errorf("it says %q at once, want closed until %s", state, until.UTC())
	}
	for m := now; m.Before(until.Add(near)); m = m.Add(time.Minute) {
		if m.After(now.Add(near)) && m.Before(until.Add(-near)) {
			m = until.Add(-near)
		}
		if open := s.At(m).Open; open != !m.Before(until) {
			t.Fatalf("open is %t at %s, which is %s from the end", open, m.UTC(), m.Sub(until))
		}
	}
	if s.At(until.Add(-time.Nanosecond)).Open {
		t.Error("it opens before the minute of the end")
	}
	if state := s.At(until); !state.Open || !state.Next.IsZero() {
		t.Errorf("at the end it says %q", state)
	}
}

func TestWithoutAnEndTheScheduleIsClosedForever(t *testing.T) {
	f := started(t, time.Time{})
	spec := f.ClusterSchedule(&metav1.LabelSelector{}).Spec.RolloutScheduleSpec
	s, err := schedule.Parse(&spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, moment := range []time.Time{now.AddDate(-1, 0, 0), now, now.AddDate(100, 0, 0)} {
		if state := s.At(moment); state.String() != "closed by rule freeze (no end time)" {
			t.Errorf("at %s it is %q", moment, state)
		}
	}
}
