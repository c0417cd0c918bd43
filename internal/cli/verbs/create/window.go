// SPDX-License-Identifier: Apache-2.0

package create

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

var (
	clockRange = regexp.MustCompile(`^(\d\d:\d\d)-(\d\d:\d\d)$`)
	dateRange  = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)(?:(?:\.\.|/)(\d{4}-\d\d-\d\d))?$`)
	weekdays   = []v1alpha1.DayOfWeek{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
)

// endOfDay is how users write midnight at the end of a window. Rules write it as the start of
// the next day.
const endOfDay = "24:00"

// rulesOf returns the rules for windows.
func rulesOf(windows []string) ([]v1alpha1.ScheduleRule, error) {
	var rules []v1alpha1.ScheduleRule
	for _, window := range windows {
		rule, err := ruleOf(window)
		if err != nil {
			return nil, fmt.Errorf("%q is not a window: %w; write \"Mon-Fri 08:00-17:00\", \"Sat,Sun\" or 2026-12-20..2027-01-03", window, err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// ruleOf returns the rule for a window. Its name is the window.
func ruleOf(window string) (v1alpha1.ScheduleRule, error) {
	rule := v1alpha1.ScheduleRule{Name: window}
	words := strings.Fields(window)
	if len(words) == 0 {
		return rule, errors.New("it is empty")
	}
	for _, word := range words {
		if err := addTo(&rule, word); err != nil {
			return rule, err
		}
	}
	return rule, nil
}

// addTo adds one part of a window to its rule.
func addTo(rule *v1alpha1.ScheduleRule, word string) error {
	clock, dates := clockRange.FindStringSubmatch(word), dateRange.FindStringSubmatch(word)
	switch {
	case clock != nil && rule.TimeRange == nil:
		rule.TimeRange = &v1alpha1.TimeRange{Start: clock[1], End: strings.ReplaceAll(clock[2], endOfDay, "00:00")}
		return nil
	case dates != nil && rule.DateRange == nil:
		rule.DateRange = &v1alpha1.DateRange{Start: dates[1], End: dates[2]}
		if dates[2] == "" {
			rule.DateRange.End = dates[1]
		}
		return nil
	case clock != nil || dates != nil || rule.DaysOfWeek != nil:
		return fmt.Errorf("%q is one part too many", word)
	}
	days, err := daysOf(word)
	rule.DaysOfWeek = days
	return err
}

// daysOf returns the days of "Mon-Fri", or of "Sat,Sun". The week goes on after Sunday.
func daysOf(word string) ([]v1alpha1.DayOfWeek, error) {
	var all []v1alpha1.DayOfWeek
	for part := range strings.SplitSeq(word, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, last := dayOf(from), dayOf(to)
		if !isRange {
			last = first
		}
		if first < 0 || last < 0 {
			return nil, fmt.Errorf("%q is neither a day of the week, a time nor a date", part)
		}
		for day := first; ; day = (day + 1) % len(weekdays) {
			if !slices.Contains(all, weekdays[day]) {
				all = append(all, weekdays[day])
			}
			if day == last {
				break
			}
		}
	}
	return all, nil
}

// shortest is how many letters of a day are needed.
const shortest = 3

// dayOf returns which day of the week a word begins, from Monday; -1 if none.
func dayOf(word string) int {
	return slices.IndexFunc(weekdays, func(day v1alpha1.DayOfWeek) bool {
		return len(word) >= shortest && strings.HasPrefix(strings.ToLower(string(day)), strings.ToLower(word))
	})
}
