// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

const (
	// ruleName is in the messages of releases that are held: "closed by rule freeze".
	ruleName = "freeze"
	// lastYear is the last one that a date of a rule can have.
	lastYear = 9999
	// clock is a time of day in a rule.
	clock    = "15:04"
	midnight = "00:00"
)

// spec closes a schedule from now on.
func (f Freeze) spec(selector *metav1.LabelSelector) v1alpha1.RolloutScheduleSpec {
	return v1alpha1.RolloutScheduleSpec{RolloutSelector: selector, Rules: f.rules(), Timezone: "UTC", Action: v1alpha1.ScheduleDeny}
}

// rules returns a rule for the whole days before the end, and one for its own day up to
// the minute.
//
// They are in UTC, where each minute occurs once. In a zone whose clocks are set back, an
// end within the repeated hour would close the schedule a second time, and the controller
// may not know each zone of this machine.
func (f Freeze) rules() []v1alpha1.ScheduleRule {
	if f.Until.IsZero() {
		return []v1alpha1.ScheduleRule{{Name: ruleName}}
	}
	end := f.Until.UTC()
	var rules []v1alpha1.ScheduleRule
	first, last := f.now.UTC().Format(time.DateOnly), end.AddDate(0, 0, -1).Format(time.DateOnly)
	if first <= last {
		rules = append(rules, v1alpha1.ScheduleRule{Name: ruleName, DateRange: &v1alpha1.DateRange{Start: first, End: last}})
	}
	// A window from midnight to midnight has 24 hours.
	if minute := end.Format(clock); minute != midnight {
		own := end.Format(time.DateOnly)
		rules = append(rules, v1alpha1.ScheduleRule{
			Name: ruleName, TimeRange: &v1alpha1.TimeRange{Start: midnight, End: minute}, DateRange: &v1alpha1.DateRange{Start: own, End: own},
		})
	}
	return rules
}
