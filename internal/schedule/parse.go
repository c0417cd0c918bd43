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

// inRule returns the error in a rule as one in the spec.
func inRule(spec *v1alpha1.ScheduleRule, i int, err error) error {
	place := []string{"spec", "rules", strconv.Itoa(i)}
	if inner, ok := errors.AsType[*FieldError](err); ok {
		place = append(place, inner.Path...)
	}
	return &FieldError{place, fmt.Errorf("%s: %w", placeOf(spec, i), err)}
}

// MaxRules is how many rules a schedule may have. That is enough for the holidays of many
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
	if n := len(spec.Rules); n > MaxRules {
		return nil, in("spec.rules", fmt.Errorf("spec.rules: there are %d rules, and at most %d are evaluated: remove those that are over", n, MaxRules))
	}
	for i := range spec.Rules {
		r, err := parseRule(&spec.Rules[i], i)
		if err != nil {
			return nil, inRule(&spec.Rules[i], i, err)
		}
		s.rules = append(s.rules, r)
	}
	s.breaks, s.byStart = breaksOf(s.rules), byStart(s.rules)
	return s, nil
}

func byStart(rules []rule) []*rule {
	var sorted []*rule
	for i := range rules {
		sorted = append(sorted, &rules[i])
	}
	slices.SortFunc(sorted, func(a, b *rule) int { return cmp.Compare(a.from, b.from) })
	return sorted
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
		return nil, in("spec.timezone", fmt.Errorf("spec.timezone %q is no zone of the IANA database, such as Europe/Berlin", name))
	}
	zones.Store(name, zone)
	return zone, nil
}

// placeOf returns the place of a rule in the spec, and its name.
func placeOf(spec *v1alpha1.ScheduleRule, i int) string {
	if spec.Name == "" {
		return fmt.Sprintf("spec.rules[%d]", i)
	}
	return fmt.Sprintf("spec.rules[%d] (%s)", i, spec.Name)
}

func parseRule(spec *v1alpha1.ScheduleRule, i int) (rule, error) {
	r := everyDay()
	r.name = spec.Name
	if r.name == "" {
		r.name = fmt.Sprintf("rules[%d]", i)
	}
	return r, cmp.Or(r.setHours(spec.TimeRange), r.setWeekdays(spec.DaysOfWeek), r.setDates(spec.DateRange))
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
	if to <= from {
		to += secondsPerDay
	}
	r.from, r.to = from, to
	return nil
}

func parseClock(text string) (reading, error) {
	t, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("%q is no time of day: write HH:MM", text)
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
		weekday := slices.IndexFunc(weekdays, func(d time.Weekday) bool { return d.String() == string(name) })
		if weekday < 0 {
			return in("daysOfWeek", fmt.Errorf("daysOfWeek: %q is no day: write Monday, Tuesday, and so on", name))
		}
		r.weekdays[weekday] = true
	}
	return nil
}

var weekdays = []time.Weekday{
	time.Sunday, time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday, time.Saturday,
}

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
		return 0, fmt.Errorf("%q is no day of the calendar: write YYYY-MM-DD", text)
	}
	return dayOf(t), nil
}

func breaksOf(rules []rule) []day {
	var breaks []day
	for i := range rules {
		if rules[i].first != everBefore {
			breaks = append(breaks, rules[i].first, rules[i].last+1)
		}
	}
	slices.Sort(breaks)
	return slices.Compact(breaks)
}
