// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/schedule"
)

// rule parses a short form of a rule: hours, days and dates in any order, as in
// "22:00-06:00 Mon,Fri 2026-03-01..2026-03-31", or in "18:00-06:00/Mon" for an end on Monday,
// "months:May,June", "days:1,-1", "weeks:-1" and "every:2/2026-03-02".
func rule(text string) v1alpha1.ScheduleRule {
	var r v1alpha1.ScheduleRule
	for _, word := range strings.Fields(text) {
		from, to, dates := strings.Cut(word, "..")
		start, end, hours := strings.Cut(word, "-")
		if calendar(&r, word) {
			continue
		}
		switch {
		case dates:
			r.DateRange = &v1alpha1.DateRange{Start: from, End: to}
		case hours:
			end, day, _ := strings.Cut(end, "/")
			r.TimeRange = &v1alpha1.TimeRange{Start: start, End: end, EndDay: dayCalled[day]}
		case strings.HasPrefix(word, "#"):
			r.Name = word[1:]
		default:
			for short := range strings.SplitSeq(word, ",") {
				r.DaysOfWeek = append(r.DaysOfWeek, dayCalled[short])
			}
		}
	}
	return r
}

func calendar(r *v1alpha1.ScheduleRule, word string) bool {
	field, values, _ := strings.Cut(word, ":")
	for value := range strings.SplitSeq(values, ",") {
		n, _ := strconv.Atoi(value)
		switch field {
		case "months":
			r.Months = append(r.Months, v1alpha1.Month(value))
		case "days":
			r.DaysOfMonth = append(r.DaysOfMonth, v1alpha1.DayOfMonth(n))
		case "weeks":
			r.WeeksOfMonth = append(r.WeeksOfMonth, v1alpha1.WeekOfMonth(n))
		case "every":
			count, since, _ := strings.Cut(value, "/")
			n, _ := strconv.Atoi(count)
			r.EveryWeeks = &v1alpha1.EveryWeeks{Count: int32(n), Since: since}
		default:
			return false
		}
	}
	return true
}

// except adds exceptions.
func except(spec *v1alpha1.RolloutScheduleSpec, rules ...string) *v1alpha1.RolloutScheduleSpec {
	for _, text := range rules {
		spec.Exceptions = append(spec.Exceptions, rule(text))
	}
	return spec
}

var dayCalled = map[string]v1alpha1.DayOfWeek{
	"Mon": "Monday", "Tue": "Tuesday", "Wed": "Wednesday", "Thu": "Thursday", "Fri": "Friday", "Sat": "Saturday", "Sun": "Sunday",
}

func allow(zone string, rules ...string) *v1alpha1.RolloutScheduleSpec {
	spec := &v1alpha1.RolloutScheduleSpec{Timezone: zone, Action: v1alpha1.ScheduleAllow}
	for _, text := range rules {
		spec.Rules = append(spec.Rules, rule(text))
	}
	return spec
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func diff(t *testing.T, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("unexpected (-want +got):\n%s", d)
	}
}

// Each case is a schedule, and its transitions in some days. 2026-03-02 is a Monday. In
// 2026 clocks go forward on 29 March in Berlin, on 8 March in New York and on 4 October
// on Lord Howe Island, where they go by half an hour. They go back on 25 October, 1
// November and 5 April.
func TestScheduleChanges(t *testing.T) {
	for name, test := range map[string]struct {
		spec     *v1alpha1.RolloutScheduleSpec
		from, to string
		active   bool
		want     string
	}{
		"a window by day": {
			spec: allow("UTC", "09:00-17:00"), from: "2026-03-02T08:59:59Z", to: "2026-03-03T09:00:00Z",
			want: "2026-03-02T09:00:00Z 2026-03-02T17:00:00Z 2026-03-03T09:00:00Z",
		},
		"its start is within, its end is not": {
			spec: allow("UTC", "09:00-17:00"), from: "2026-03-02T09:00:00Z", to: "2026-03-02T17:00:00Z", active: true,
			want: "2026-03-02T17:00:00Z",
		},
		"no zone is UTC": {
			spec: allow("", "09:00-17:00"), from: "2026-03-02T00:00:00Z", to: "2026-03-03T00:00:00Z",
			want: "2026-03-02T09:00:00Z 2026-03-02T17:00:00Z",
		},
		"a window over midnight belongs to the day on which it starts": {
			spec: allow("UTC", "22:00-06:00 Mon,Tue,Wed,Thu,Fri"), from: "2026-03-06T12:00:00Z", to: "2026-03-10T00:00:00Z",
			want: "2026-03-06T22:00:00Z 2026-03-07T06:00:00Z 2026-03-09T22:00:00Z",
		},
		"so Saturday's small hours are Friday's": {
			spec: allow("UTC", "22:00-06:00 Mon,Tue,Wed,Thu,Fri"), from: "2026-03-07T02:00:00Z", to: "2026-03-07T06:00:00Z", active: true,
			want: "2026-03-07T06:00:00Z",
		},
		"and Monday's are Sunday's": {
			spec: allow("UTC", "22:00-06:00 Mon,Tue,Wed,Thu,Fri"), from: "2026-03-09T02:00:00Z", to: "2026-03-09T22:00:00Z",
			want: "2026-03-09T22:00:00Z",
		},
		"the same holds for dates": {
			spec: allow("UTC", "22:00-06:00 2026-03-02..2026-03-03"), from: "2026-03-02T00:00:00Z", to: "2026-03-10T00:00:00Z",
			want: "2026-03-02T22:00:00Z 2026-03-03T06:00:00Z 2026-03-03T22:00:00Z 2026-03-04T06:00:00Z",
		},
		"and for both together": {
			spec: allow("UTC", "22:00-06:00 Fri 2026-03-01..2026-03-13"), from: "2026-03-01T00:00:00Z", to: "2026-06-01T00:00:00Z",
			want: "2026-03-06T22:00:00Z 2026-03-07T06:00:00Z 2026-03-13T22:00:00Z 2026-03-14T06:00:00Z",
		},
		"equal times are 24 hours": {
			spec: allow("UTC", "09:00-09:00 Mon"), from: "2026-03-01T00:00:00Z", to: "2026-03-08T00:00:00Z",
			want: "2026-03-02T09:00:00Z 2026-03-03T09:00:00Z",
		},
		"equal times every day are always": {
			spec: allow("Europe/Berlin", "09:00-09:00"), from: "2026-03-01T00:00:00Z", to: "2027-03-08T00:00:00Z", active: true,
		},
		"without hours a rule has whole days": {
			spec: allow("Europe/Berlin", "Sat,Sun"), from: "2026-03-02T00:00:00Z", to: "2026-03-09T00:00:00Z",
			want: "2026-03-06T23:00:00Z 2026-03-08T23:00:00Z",
		},
		"both ends of a range of dates are within": {
			spec: allow("UTC", "2026-12-20..2027-01-03"), from: "2026-03-02T00:00:00Z", to: "2030-01-01T00:00:00Z",
			want: "2026-12-20T00:00:00Z 2027-01-04T00:00:00Z",
		},
		"an empty rule is always active": {
			spec: allow("America/New_York", ""), from: "2026-03-02T00:00:00Z", to: "2030-01-01T00:00:00Z", active: true,
		},
		"a range that is over never is": {
			spec: allow("Europe/Berlin", "2020-01-01..2020-01-02"), from: "2026-03-02T00:00:00Z", to: "2030-01-01T00:00:00Z",
		},
		"and hides no other rule's transitions": {
			spec: allow("UTC", "2020-01-01..2020-01-02", "09:00-17:00"), from: "2026-03-02T00:00:00Z", to: "2026-03-03T00:00:00Z",
			want: "2026-03-02T09:00:00Z 2026-03-02T17:00:00Z",
		},
		"a range without a day that is wanted never is": {
			spec: allow("UTC", "Tue 2026-03-02..2026-03-02"), from: "2026-03-01T00:00:00Z", to: "2030-01-01T00:00:00Z",
		},
		"rules that meet are one window": {
			spec: allow("UTC", "08:00-12:00", "12:00-14:00", "13:00-15:00"), from: "2026-03-02T00:00:00Z", to: "2026-03-03T00:00:00Z",
			want: "2026-03-02T08:00:00Z 2026-03-02T15:00:00Z",
		},
		"rules that cover everything never change": {
			spec: allow("Europe/Berlin", "06:00-18:00", "18:00-06:00"), from: "2026-03-02T00:00:00Z", to: "2030-01-01T00:00:00Z", active: true,
		},
		"until one of them is over": {
			spec: allow("Europe/Berlin", "06:00-18:00", "18:00-06:00 2026-01-01..2040-06-30"), from: "2026-03-02T00:00:00Z", to: "2040-07-01T16:00:00Z", active: true,
			want: "2040-07-01T16:00:00Z",
		},
		"a range far away changes nothing before it begins": {
			spec: allow("UTC", "06:42-06:42", "Thu 2026-06-20..2026-06-20"), from: "2026-03-02T00:00:00Z", to: "2030-01-01T00:00:00Z", active: true,
		},
		"a range far away": {
			spec: allow("Europe/Berlin", "2999-07-01..2999-07-01"), from: "2026-03-02T00:00:00Z", to: "3000-01-01T00:00:00Z",
			want: "2999-06-30T22:00:00Z 2999-07-01T22:00:00Z",
		},
		"a range to the last date there is": {
			spec: allow("UTC", "2026-03-03..9999-12-31"), from: "2026-03-02T00:00:00Z", to: "9999-12-31T23:59:59Z",
			want: "2026-03-03T00:00:00Z",
		},
		"working hours while clocks go forward in New York": {
			spec: allow("America/New_York", "09:00-17:00"), from: "2026-03-07T00:00:00Z", to: "2026-03-09T00:00:00Z",
			want: "2026-03-07T14:00:00Z 2026-03-07T22:00:00Z 2026-03-08T13:00:00Z 2026-03-08T21:00:00Z",
		},
		"and back": {
			spec: allow("America/New_York", "09:00-17:00"), from: "2026-10-31T00:00:00Z", to: "2026-11-02T00:00:00Z",
			want: "2026-10-31T13:00:00Z 2026-10-31T21:00:00Z 2026-11-01T14:00:00Z 2026-11-01T22:00:00Z",
		},
		"a night that is an hour short": {
			spec: allow("Europe/Berlin", "22:00-06:00 Sat"), from: "2026-03-28T00:00:00Z", to: "2026-03-30T00:00:00Z",
			want: "2026-03-28T21:00:00Z 2026-03-29T04:00:00Z",
		},
		"a night that is an hour long": {
			spec: allow("Europe/Berlin", "22:00-06:00 Sat"), from: "2026-10-24T00:00:00Z", to: "2026-10-26T00:00:00Z",
			want: "2026-10-24T20:00:00Z 2026-10-25T05:00:00Z",
		},
		"a start that is skipped: the window opens when the clock has passed it": {
			spec: allow("Europe/Berlin", "02:30-04:00"), from: "2026-03-29T00:00:00Z", to: "2026-03-29T12:00:00Z",
			want: "2026-03-29T01:00:00Z 2026-03-29T02:00:00Z",
		},
		"an end that is skipped: it closes when the clock has passed it": {
			spec: allow("Europe/Berlin", "01:00-02:30"), from: "2026-03-28T23:00:00Z", to: "2026-03-29T12:00:00Z",
			want: "2026-03-29T00:00:00Z 2026-03-29T01:00:00Z",
		},
		"a window that is skipped does not occur": {
			spec: allow("Europe/Berlin", "02:15-02:45"), from: "2026-03-28T12:00:00Z", to: "2026-03-31T00:00:00Z",
			want: "2026-03-30T00:15:00Z 2026-03-30T00:45:00Z",
		},
		"a window that is repeated occurs twice": {
			spec: allow("Europe/Berlin", "02:15-02:45"), from: "2026-10-24T12:00:00Z", to: "2026-10-25T12:00:00Z",
			want: "2026-10-25T00:15:00Z 2026-10-25T00:45:00Z 2026-10-25T01:15:00Z 2026-10-25T01:45:00Z",
		},
		"an end that is repeated closes, opens and closes": {
			spec: allow("Europe/Berlin", "01:00-02:30"), from: "2026-10-24T22:00:00Z", to: "2026-10-25T12:00:00Z",
			want: "2026-10-24T23:00:00Z 2026-10-25T00:30:00Z 2026-10-25T01:00:00Z 2026-10-25T01:30:00Z",
		},
		"half an hour is skipped on Lord Howe Island": {
			spec: allow("Australia/Lord_Howe", "02:15-03:00"), from: "2026-10-03T12:00:00Z", to: "2026-10-04T00:00:00Z",
			want: "2026-10-03T15:30:00Z 2026-10-03T16:00:00Z",
		},
		"and repeated": {
			spec: allow("Australia/Lord_Howe", "01:45-02:15"), from: "2026-04-04T12:00:00Z", to: "2026-04-05T00:00:00Z",
			want: "2026-04-04T14:45:00Z 2026-04-04T15:00:00Z 2026-04-04T15:15:00Z 2026-04-04T15:45:00Z",
		},
		"a midnight that is skipped: the day begins at one": {
			spec: allow("Africa/Cairo", "Fri"), from: "2026-04-23T00:00:00Z", to: "2026-04-25T00:00:00Z",
			want: "2026-04-23T22:00:00Z 2026-04-24T21:00:00Z",
		},
		"a last hour that is repeated: the day has 25": {
			spec: allow("Africa/Cairo", "2026-10-29..2026-10-29"), from: "2026-10-28T00:00:00Z", to: "2026-11-05T00:00:00Z",
			want: "2026-10-28T21:00:00Z 2026-10-29T22:00:00Z",
		},
		"the 25th of December, each year": {
			spec: allow("Europe/Berlin", "months:December days:25"), from: "2026-03-02T00:00:00Z", to: "2028-12-01T00:00:00Z",
			want: "2026-12-24T23:00:00Z 2026-12-25T23:00:00Z 2027-12-24T23:00:00Z 2027-12-25T23:00:00Z",
		},
		"29 February": {
			spec: allow("UTC", "months:February days:29"), from: "2026-03-02T00:00:00Z", to: "2033-01-01T00:00:00Z",
			want: "2028-02-29T00:00:00Z 2028-03-01T00:00:00Z 2032-02-29T00:00:00Z 2032-03-01T00:00:00Z",
		},
		"29 February, though 2100 has none": {
			spec: allow("UTC", "months:February days:29"), from: "2096-03-02T00:00:00Z", to: "2105-01-01T00:00:00Z",
			want: "2104-02-29T00:00:00Z 2104-03-01T00:00:00Z",
		},
		"29 February on a Monday, after forty years": {
			spec: allow("UTC", "months:February days:29 Mon"), from: "2072-03-02T00:00:00Z", to: "2113-01-01T00:00:00Z",
			want: "2112-02-29T00:00:00Z 2112-03-01T00:00:00Z",
		},
		"the last day of the month, also in February": {
			spec: allow("Asia/Kolkata", "18:00-20:00 days:-1"), from: "2028-02-01T00:00:00Z", to: "2028-04-01T00:00:00Z",
			want: "2028-02-29T12:30:00Z 2028-02-29T14:30:00Z 2028-03-31T12:30:00Z 2028-03-31T14:30:00Z",
		},
		"the first and the 15th": {
			spec: allow("UTC", "09:00-10:00 days:1,15"), from: "2026-03-02T00:00:00Z", to: "2026-04-02T00:00:00Z",
			want: "2026-03-15T09:00:00Z 2026-03-15T10:00:00Z 2026-04-01T09:00:00Z 2026-04-01T10:00:00Z",
		},
		"31 days from the end are in long months only": {
			spec: allow("UTC", "days:-31"), from: "2026-03-31T12:00:00Z", to: "2026-05-03T00:00:00Z",
			want: "2026-05-01T00:00:00Z 2026-05-02T00:00:00Z",
		},
		"the last Friday, and the first Monday": {
			spec: allow("UTC", "12:00-13:00 Fri weeks:-1", "12:00-13:00 Mon weeks:1"), from: "2026-03-03T00:00:00Z", to: "2026-04-07T00:00:00Z",
			want: "2026-03-27T12:00:00Z 2026-03-27T13:00:00Z 2026-04-06T12:00:00Z 2026-04-06T13:00:00Z",
		},
		"the fifth Friday, if there is one": {
			spec: allow("UTC", "Fri weeks:5"), from: "2026-02-01T00:00:00Z", to: "2026-08-01T00:00:00Z",
			want: "2026-05-29T00:00:00Z 2026-05-30T00:00:00Z 2026-07-31T00:00:00Z 2026-08-01T00:00:00Z",
		},
		"every second week, from a Wednesday on": {
			spec: allow("UTC", "Mon,Wed every:2/2026-03-04"), from: "2026-02-16T00:00:00Z", to: "2026-03-24T00:00:00Z",
			want: "2026-03-04T00:00:00Z 2026-03-05T00:00:00Z 2026-03-09T00:00:00Z 2026-03-10T00:00:00Z " +
				"2026-03-18T00:00:00Z 2026-03-19T00:00:00Z 2026-03-23T00:00:00Z 2026-03-24T00:00:00Z",
		},
		"every second week, in the middle of one": {
			spec: allow("UTC", "every:2/2026-03-04"), from: "2026-03-20T00:00:00Z", to: "2026-04-02T00:00:00Z", active: true,
			want: "2026-03-25T00:00:00Z 2026-04-01T00:00:00Z",
		},
		"a weekend from Friday evening to Monday morning": {
			spec: allow("Europe/Berlin", "18:00-06:00/Mon Fri"), from: "2026-03-25T00:00:00Z", to: "2026-04-01T00:00:00Z",
			want: "2026-03-27T17:00:00Z 2026-03-30T04:00:00Z",
		},
		"an end on the same day, and on the one a week later": {
			spec: allow("UTC", "08:00-18:00/Fri Fri", "20:00-07:00/Tue Tue days:3"), from: "2026-03-02T00:00:00Z", to: "2026-03-11T00:00:00Z",
			want: "2026-03-03T20:00:00Z 2026-03-10T07:00:00Z",
		},
		"a window that begins in a month and ends in the next": {
			spec: allow("UTC", "22:00-02:00/Sun months:March days:27"), from: "2026-03-01T00:00:00Z", to: "2027-01-01T00:00:00Z",
			want: "2026-03-27T22:00:00Z 2026-03-29T02:00:00Z",
		},
		"an exception in a freeze": {
			spec: except(allow("UTC", "2026-12-20..2027-01-03"), "10:00-12:00 Tue"), from: "2026-12-19T00:00:00Z", to: "2027-01-05T00:00:00Z",
			want: "2026-12-20T00:00:00Z 2026-12-22T10:00:00Z 2026-12-22T12:00:00Z 2026-12-29T10:00:00Z 2026-12-29T12:00:00Z 2027-01-04T00:00:00Z",
		},
		"holidays in the working hours": {
			spec: except(allow("UTC", "08:00-17:00 Thu,Fri"), "months:December days:25"), from: "2026-12-24T00:00:00Z", to: "2027-01-01T00:00:00Z",
			want: "2026-12-24T08:00:00Z 2026-12-24T17:00:00Z 2026-12-31T08:00:00Z 2026-12-31T17:00:00Z",
		},
		"exceptions that hide every window": {
			spec: except(allow("UTC", "09:00-17:00 Mon"), "08:00-18:00 Mon"), from: "2026-03-02T00:00:00Z", to: "2060-01-01T00:00:00Z",
		},
		"an exception that ends with its window changes nothing more": {
			spec: except(allow("UTC", "09:00-17:00 Mon"), "16:00-17:00"), from: "2026-03-02T00:00:00Z", to: "2026-03-09T00:00:00Z",
			want: "2026-03-02T09:00:00Z 2026-03-02T16:00:00Z",
		},
		"an exception far away in what never ends": {
			spec: except(allow("UTC", ""), "2999-07-01..2999-07-01"), from: "2026-03-02T00:00:00Z", to: "3000-01-01T00:00:00Z", active: true,
			want: "2999-07-01T00:00:00Z 2999-07-02T00:00:00Z",
		},
		"halves of months are always active": {
			spec: allow("UTC", "days:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15", "days:16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31"),
			from: "2026-03-02T00:00:00Z", to: "2090-01-01T00:00:00Z", active: true,
		},
		"a calendar that begins after many years": {
			spec: allow("UTC", "days:1 2400-02-02..9999-12-31"), from: "2026-03-02T00:00:00Z", to: "2400-03-02T00:00:00Z",
			want: "2400-03-01T00:00:00Z 2400-03-02T00:00:00Z",
		},
		"a last day whose midnight is skipped": {
			spec: allow("Africa/Cairo", "days:-7 months:April"), from: "2026-04-20T00:00:00Z", to: "2026-05-01T00:00:00Z",
			want: "2026-04-23T22:00:00Z 2026-04-24T21:00:00Z",
		},
		"a day that never was": {
			spec: allow("Pacific/Apia", "Fri"), from: "2011-12-25T00:00:00Z", to: "2012-01-08T00:00:00Z",
			want: "2012-01-05T10:00:00Z 2012-01-06T10:00:00Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := at(t, test.from), at(t, test.to)
			diff(t, test.active, parse(t, test.spec).At(from).Active)
			var got []string
			for _, moment := range transitions(t, test.spec, from, to) {
				got = append(got, moment.Format(time.RFC3339))
			}
			diff(t, test.want, strings.Join(got, " "))
		})
	}
}

// The edges of many windows, around days on which clocks are set, must be the same as
// those of a search over the readings of the clock.
func TestTransitionsAreThoseThatASearchFinds(t *testing.T) {
	days := map[string][]string{
		"Europe/Berlin":       {"2026-03-29", "2026-10-25"},
		"America/New_York":    {"2026-03-08", "2026-11-01"},
		"Australia/Lord_Howe": {"2026-04-05", "2026-10-04"},
		"America/Havana":      {"2026-03-08", "2026-11-01"},
		"UTC":                 {"2026-03-29", "2026-10-25"},
	}
	windows := []string{
		"09:00-17:00", "22:00-06:00", "22:00-06:00 Sat", "22:00-06:00 Sun", "00:00-00:00 Sun", "03:00-03:00 Sat",
		"02:00-03:00", "01:30-02:30", "02:30-03:30", "02:15-02:20", "01:59-02:01", "02:00-02:00 Sun", "00:00-01:00", "23:30-00:30",
		"Sun", "Mon 2026-01-01..2026-12-31", "02:30-02:30 2026-03-28..2026-03-28",
	}
	for zone, dates := range days {
		for _, date := range dates {
			for i, text := range windows {
				spec := allow(zone, text, windows[(i*5+1)%len(windows)])
				if i%2 == 0 {
					spec = allow(zone, text)
				}
				from := at(t, date+"T00:00:00Z").Add(-36 * time.Hour)
				to := from.Add(84 * time.Hour)
				if d := cmp.Diff(flips(spec, load(t, zone), from, to), transitions(t, spec, from, to)); d != "" {
					t.Errorf("%s, %s, %v (-search +schedule):\n%s", zone, date, spec.Rules, d)
				}
			}
		}
	}
}

func TestOpenIsWhatTheActionMakesOfActive(t *testing.T) {
	noon := at(t, "2026-03-02T12:00:00Z")
	five := at(t, "2026-03-02T17:00:00Z")
	nine := at(t, "2026-03-03T09:00:00Z")
	for action, states := range map[v1alpha1.ScheduleAction][2]schedule.State{
		v1alpha1.ScheduleAllow: {
			{Active: true, Rules: []string{"day", "rules[2]"}, Open: true, Next: five}, {Open: false, Next: nine},
		},
		v1alpha1.ScheduleDeny: {
			{Active: true, Rules: []string{"day", "rules[2]"}, Open: false, Next: five}, {Open: true, Next: nine},
		},
		"": {
			{Active: true, Rules: []string{"day", "rules[2]"}, Open: false, Next: five}, {Open: true, Next: nine},
		},
	} {
		spec := allow("UTC", "#day 09:00-17:00", "#night 18:00-19:00 Sun", "11:00-13:00")
		spec.Action = action
		diff(t, states[0], parse(t, spec).At(noon))
		spec.Rules = spec.Rules[:1]
		diff(t, states[1], parse(t, spec).At(five))
	}
}

func TestStateIsReportedInASentence(t *testing.T) {
	next := at(t, "2027-01-04T00:00:00Z")
	for want, state := range map[string]schedule.State{
		"closed by rule year-end until 2027-01-04T00:00:00Z":    {Active: true, Rules: []string{"year-end"}, Next: next},
		"open by rules a, b until 2027-01-04T00:00:00Z":         {Active: true, Rules: []string{"a", "b"}, Open: true, Next: next},
		"open until 2027-01-04T00:00:00Z":                       {Open: true, Next: next},
		"closed (no end time)":                                  {},
		"open by exception hotfixes until 2027-01-04T00:00:00Z": {Exceptions: []string{"hotfixes"}, Open: true, Next: next},
		"closed by exceptions a, b (no end time)":               {Exceptions: []string{"a", "b"}},
	} {
		diff(t, want, state.String())
	}
}

func TestErrorsNameRuleAndField(t *testing.T) {
	action := allow("UTC", "Mon")
	action.Action = "Maybe"
	weekday := allow("UTC", "Mon")
	weekday.Rules[0].DaysOfWeek = []v1alpha1.DayOfWeek{"Monday", "Caturday"}
	endDay := allow("UTC", "08:00-09:00")
	endDay.Rules[0].TimeRange.EndDay = "Caturday"
	week := allow("UTC", "Mon,Tue,Wed,Thu,Fri,Sat,Sun,Mon")
	many := except(allow("UTC", slices.Repeat([]string{"Mon"}, 150)...), slices.Repeat([]string{"Mon"}, 51)...)
	for want, spec := range map[string]*v1alpha1.RolloutScheduleSpec{
		`spec.rules: there are 201 rules and exceptions, and at most 200 are evaluated: remove those that are over`: many,
		`spec.rules[0]: timeRange.endDay "Caturday" is not a day: write Monday, Tuesday, and so on`:                 endDay,
		`spec.rules[0]: weeksOfMonth needs daysOfWeek: it selects the first Friday, or the last`:                    allow("", "weeks:1"),
		`spec.rules[0]: weeksOfMonth: 6 is not a week of a month: write 1 to 5, or -1 to -5 from its end`:           allow("", "Fri weeks:1,6"),
		`spec.rules[0]: daysOfMonth: 0 is not a day of a month: write 1 to 31, or -1 to -31 from its end`:           allow("", "days:0"),
		`spec.rules[0]: daysOfMonth: none of the months has one of these days`:                                      allow("", "days:30,-31 months:February"),
		`spec.rules[0]: months: "Dec" is not a month: write January, February, and so on`:                           allow("", "months:Dec"),
		`spec.rules[0]: everyWeeks.count is 1: write 2 to 52`:                                                       allow("", "every:1/2026-03-02"),
		`spec.rules[0]: everyWeeks.since "2026-02-29" is not a day of the calendar: write YYYY-MM-DD`:               allow("", "every:2/2026-02-29"),
		`spec.exceptions[1] (hotfix): timeRange.start "24:00" is not a time of day: write HH:MM`:                    except(allow("", "Mon"), "Mon", "#hotfix 24:00-06:00"),
		`spec.timezone "Mars/Olympus" is not a zone of the IANA database, such as Europe/Berlin`:                    allow("Mars/Olympus", "Mon"),
		`spec.timezone "../UTC" is not a zone of the IANA database, such as Europe/Berlin`:                          allow("../UTC", "Mon"),
		`spec.timezone "Local" depends on the machine: name a zone, such as Europe/Berlin`:                          allow("Local", "Mon"),
		`spec.timezone "UTC/." is not a zone of the IANA database, such as Europe/Berlin`:                           allow("UTC/.", "Mon"),
		`spec.timezone "Europe//Berlin" is not a zone of the IANA database, such as Europe/Berlin`:                  allow("Europe//Berlin", "Mon"),
		`spec.timezone "Europe/./Berlin" is not a zone of the IANA database, such as Europe/Berlin`:                 allow("Europe/./Berlin", "Mon"),
		`spec.rules[0]: daysOfWeek has 8 days: a week has 7`:                                                        week,
		`spec.timezone "localtime" depends on the machine: name a zone, such as Europe/Berlin`:                      allow("localtime", "Mon"),
		`spec.action "Maybe" is neither Allow nor Deny`:                                                             action,
		`spec.rules[0]: timeRange.start "24:00" is not a time of day: write HH:MM`:                                  allow("", "24:00-06:00"),
		`spec.rules[1] (late): timeRange.end "6" is not a time of day: write HH:MM`:                                 allow("", "Mon", "#late 22:00-6"),
		`spec.rules[0]: daysOfWeek: "Caturday" is not a day: write Monday, Tuesday, and so on`:                      weekday,
		`spec.rules[0]: dateRange.start "2026-02-30" is not a day of the calendar: write YYYY-MM-DD`:                allow("", "2026-02-30..2026-03-01"),
		`spec.rules[0]: dateRange.end "2026-13-01" is not a day of the calendar: write YYYY-MM-DD`:                  allow("", "2026-02-01..2026-13-01"),
		`spec.rules[1] (freeze): dateRange.end 2026-01-03 is before its start 2026-12-20`:                           allow("", "Mon", "#freeze 2026-12-20..2026-01-03"),
	} {
		_, err := schedule.Parse(spec)
		if err == nil {
			t.Errorf("accepted, want: %s", want)
			continue
		}
		diff(t, want, err.Error())
	}
}
