// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// FieldError is an error in a field of a spec. It names the field and the expected value.
type FieldError struct {
	// Path leads to the field, for example spec, rules, 0, timeRange and start.
	Path []string
	err  error
}

func (e *FieldError) Error() string { return e.err.Error() }
func (e *FieldError) Unwrap() error { return e.err }

func in(field string, err error) error { return &FieldError{strings.Split(field, "."), err} }

// inRule returns the error in a rule of a list as one in the spec.
func inRule(list string, spec *v1alpha1.ScheduleRule, i int, err error) error {
	place := []string{"spec", list, strconv.Itoa(i)}
	if inner, ok := errors.AsType[*FieldError](err); ok {
		place = append(place, inner.Path...)
	}
	return &FieldError{place, fmt.Errorf("spec.%s: %w", placeOf(list, spec, i), err)}
}

// MaxRules is how many rules and exceptions a schedule may have. That is enough for the holidays of many
// years. Each Rollout that the schedule selects depends on its evaluation.
const MaxRules = 200

// Parse prepares a spec, without its selectors, for evaluation. Each error is a FieldError.
func Parse(spec *v1alpha1.RolloutScheduleSpec) (*Schedule, error) {
	zone, err := location(spec.Timezone)
	if err != nil {
		return nil, err
	}
	s := &Schedule{zone: zone}
	switch spec.Action {
	case v1alpha1.ScheduleAllow:
		s.allow = true
	case v1alpha1.ScheduleDeny, "":
	default:
		return nil, in("spec.action", fmt.Errorf("spec.action %q is neither Allow nor Deny", spec.Action))
	}
	if n := len(spec.Rules) + len(spec.Exceptions); n > MaxRules {
		return nil, in("spec.rules", fmt.Errorf("spec.rules: there are %d rules and exceptions, and at most %d are evaluated: remove those that are over", n, MaxRules))
	}
	if s.rules, err = parseRules(spec); err != nil {
		return nil, err
	}
	s.breaks = breaksOf(s.rules)
	for i := range s.rules {
		s.add(i, &s.rules[i])
	}
	s.setWindows()
	return s, nil
}

func (s *Schedule) setWindows() {
	for i := range s.rules {
		r := &s.rules[i]
		for weekday, to := range r.to {
			s.windows[weekday] = append(s.windows[weekday], window{r.from, to, r.exception})
			s.longest = max(s.longest, (to - 1).day())
		}
	}
}

// parseRules returns the rules and exceptions in the order in which their windows start.
func parseRules(spec *v1alpha1.RolloutScheduleSpec) ([]rule, error) {
	var all []rule
	for i := range spec.Rules {
		r, err := parseRule("rules", &spec.Rules[i], i)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	for i := range spec.Exceptions {
		r, err := parseRule("exceptions", &spec.Exceptions[i], i)
		if err != nil {
			return nil, err
		}
		r.exception = true
		all = append(all, r)
	}
	for i := range all {
		all[i].place = i
	}
	slices.SortStableFunc(all, func(a, b rule) int { return cmp.Compare(a.from, b.from) })
	return all, nil
}

// zones contains the loaded zones by name: loading one takes longer than all else here.
var zones sync.Map

// location returns a zone by its IANA name. It refuses the local zone, which is not the
// same on every machine.
func location(name string) (*time.Location, error) {
	if name == "Local" || name == "localtime" {
		return nil, in("spec.timezone", fmt.Errorf("spec.timezone %q depends on the machine: name a zone, such as Europe/Berlin", name))
	}
	if zone, ok := zones.Load(name); ok {
		return zone.(*time.Location), nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name != "" && path.Clean(name) != name { // a zone has one name, and so one place in memory
		return nil, in("spec.timezone", fmt.Errorf("spec.timezone %q is not a zone of the IANA database, such as Europe/Berlin", name))
	}
	zones.Store(name, zone)
	return zone, nil
}

// placeOf returns the place of a rule in the spec, and its name.
func placeOf(list string, spec *v1alpha1.ScheduleRule, i int) string {
	if spec.Name == "" {
		return fmt.Sprintf("%s[%d]", list, i)
	}
	return fmt.Sprintf("%s[%d] (%s)", list, i, spec.Name)
}

func parseRule(list string, spec *v1alpha1.ScheduleRule, i int) (rule, error) {
	r := everyDay()
	r.name = spec.Name
	if r.name == "" {
		r.name = fmt.Sprintf("%s[%d]", list, i)
	}
	if err := r.set(spec); err != nil {
		return r, inRule(list, spec, i, err)
	}
	return r, nil
}

func (r *rule) set(spec *v1alpha1.ScheduleRule) error {
	return cmp.Or(
		r.setHours(spec.TimeRange), r.setWeekdays(spec.DaysOfWeek), r.setWeeks(spec), r.setMonths(spec.Months),
		r.setDays(spec.DaysOfMonth), r.setDates(spec.DateRange), r.setCycle(spec.EveryWeeks),
	)
}

func (r *rule) setHours(hours *v1alpha1.TimeRange) error {
	if hours == nil {
		return nil
	}
	from, err := parseClock(hours.Start)
	if err != nil {
		return in("timeRange.start", fmt.Errorf("timeRange.start %w", err))
	}
	to, err := parseClock(hours.End)
	if err != nil {
		return in("timeRange.end", fmt.Errorf("timeRange.end %w", err))
	}
	r.from = from
	return r.setEnds(to, hours.EndDay)
}

// setEnds sets when the window ends that starts on each day of the week: at the first such
// time after its start, on endDay if there is one.
func (r *rule) setEnds(to reading, endDay v1alpha1.DayOfWeek) error {
	ends, err := 0, error(nil)
	if endDay != "" {
		if ends, err = parseWeekday(endDay); err != nil {
			return in("timeRange.endDay", fmt.Errorf("timeRange.endDay %w", err))
		}
	}
	for starts := range r.to {
		days, every := 0, 1
		if endDay != "" {
			days, every = (ends-starts+daysPerWeek)%daysPerWeek, daysPerWeek
		}
		if days == 0 && to <= r.from {
			days = every
		}
		r.to[starts] = to + reading(days)*secondsPerDay
	}
	return nil
}

func parseClock(text string) (reading, error) {
	t, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time of day: write HH:MM", text)
	}
	return reading(t.Hour()*secondsPerHour + t.Minute()*60), nil
}

func (r *rule) setWeekdays(names []v1alpha1.DayOfWeek) error {
	if len(names) == 0 {
		return nil
	}
	if n := len(names); n > daysPerWeek {
		return in("daysOfWeek", fmt.Errorf("daysOfWeek has %d days: a week has %d", n, daysPerWeek))
	}
	r.weekdays = [daysPerWeek]bool{}
	for _, name := range names {
		weekday, err := parseWeekday(name)
		if err != nil {
			return in("daysOfWeek", fmt.Errorf("daysOfWeek: %w", err))
		}
		r.weekdays[weekday] = true
	}
	return nil
}

func parseWeekday(name v1alpha1.DayOfWeek) (int, error) {
	for weekday := range daysPerWeek {
		if time.Weekday(weekday).String() == string(name) {
			return weekday, nil
		}
	}
	return 0, fmt.Errorf("%q is not a day: write Monday, Tuesday, and so on", name)
}

func (r *rule) setWeeks(spec *v1alpha1.ScheduleRule) error {
	if len(spec.WeeksOfMonth) > 0 && len(spec.DaysOfWeek) == 0 {
		return in("weeksOfMonth", errors.New("weeksOfMonth needs daysOfWeek: it selects the first Friday, or the last"))
	}
	for _, n := range spec.WeeksOfMonth {
		if n == 0 || n < -weeksPerMonth || n > weeksPerMonth {
			return in("weeksOfMonth", fmt.Errorf("weeksOfMonth: %d is not a week of a month: write 1 to %d, or -1 to -%d from its end", n, weeksPerMonth, weeksPerMonth))
		}
		r.weeks = append(r.weeks, int(n))
	}
	return nil
}

func (r *rule) setMonths(names []v1alpha1.Month) error {
	for _, name := range names {
		month := slices.IndexFunc(months, func(m time.Month) bool { return m.String() == string(name) })
		if month < 0 {
			return in("months", fmt.Errorf("months: %q is not a month: write January, February, and so on", name))
		}
		r.months = append(r.months, month+1)
	}
	return nil
}

var months = []time.Month{
	time.January, time.February, time.March, time.April, time.May, time.June,
	time.July, time.August, time.September, time.October, time.November, time.December,
}

func (r *rule) setDays(days []v1alpha1.DayOfMonth) error {
	for _, n := range days {
		if n == 0 || n < -daysPerMonth || n > daysPerMonth {
			return in("daysOfMonth", fmt.Errorf("daysOfMonth: %d is not a day of a month: write 1 to %d, or -1 to -%d from its end", n, daysPerMonth, daysPerMonth))
		}
		r.days = append(r.days, int(n))
	}
	if len(days) > 0 && !r.occurs() {
		return in("daysOfMonth", errors.New("daysOfMonth: none of the months has one of these days"))
	}
	return nil
}

// occurs reports whether one of the months has one of the days.
func (r *rule) occurs() bool {
	const leapYear = 2000
	longest := 0
	for month := range selected(monthsPerYear, r.months) {
		longest = max(longest, lengthOf(leapYear, time.Month(month+1)))
	}
	return slices.ContainsFunc(r.days, func(n int) bool { return max(n, -n) <= longest })
}

// setCycle limits the rule to the weeks of a cycle. There is none before the first.
func (r *rule) setCycle(weeks *v1alpha1.EveryWeeks) error {
	if weeks == nil {
		return nil
	}
	if n := weeks.Count; n < 2 || n > mostWeeks {
		return in("everyWeeks.count", fmt.Errorf("everyWeeks.count is %d: write 2 to %d", n, mostWeeks))
	}
	var err error
	if r.since, err = parseDate(weeks.Since); err != nil {
		return in("everyWeeks.since", fmt.Errorf("everyWeeks.since %w", err))
	}
	r.cycle, r.first = day(weeks.Count)*daysPerWeek, max(r.first, r.since)
	return nil
}

// mostWeeks is how many weeks a cycle may have.
const mostWeeks = 52

func (r *rule) setDates(dates *v1alpha1.DateRange) error {
	if dates == nil {
		return nil
	}
	var err error
	if r.first, err = parseDate(dates.Start); err != nil {
		return in("dateRange.start", fmt.Errorf("dateRange.start %w", err))
	}
	if r.last, err = parseDate(dates.End); err != nil {
		return in("dateRange.end", fmt.Errorf("dateRange.end %w", err))
	}
	if r.first > r.last {
		return in("dateRange.end", fmt.Errorf("dateRange.end %s is before its start %s", dates.End, dates.Start))
	}
	return nil
}

func parseDate(text string) (day, error) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a day of the calendar: write YYYY-MM-DD", text)
	}
	return dayOf(t), nil
}

func breaksOf(rules []rule) []day {
	var breaks []day
	for i := range rules {
		if first := rules[i].first; first != everBefore {
			breaks = append(breaks, first)
		}
		if last := rules[i].last; last != everAfter {
			breaks = append(breaks, last+1)
		}
	}
	slices.Sort(breaks)
	return slices.Compact(breaks)
}
