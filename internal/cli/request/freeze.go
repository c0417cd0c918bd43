// SPDX-License-Identifier: Apache-2.0

package request

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// FreezeManager is the value of the label [v1alpha1.ManagedByLabel] of each object of a
// freeze. Objects without it belong to others.
const FreezeManager = "rollouts-cli"

const (
	// longestReason is how many bytes a reason may have: as many as a schedule copies to its
	// gates.
	longestReason = 1024
	// moment is how the end is shown where nothing else says when that is.
	moment = "Mon 2 Jan 2006 15:04 MST"
	// ruleName is in the messages of releases that are held: "closed by rule freeze".
	ruleName = "freeze"
	// lastYear is the last one that a date of a rule can have.
	lastYear = 9999
	// clock is a time of day in a rule.
	clock    = "15:04"
	midnight = "00:00"
)

// Freeze is what a user asks for: that a RolloutGate holds one Rollout, or that a schedule
// holds all that it selects, until a moment or until it is deleted.
type Freeze struct {
	// Until is when it ends, a whole minute; zero if it ends only when it is deleted.
	Until time.Time

	who, why string
	now      time.Time
	zone     *time.Location
}

// NewFreeze returns a freeze that begins now. The end is rounded up to a whole minute, because
// schedules have no seconds; a zero end means that it does not end by itself. The zone is
// that of the user, for texts and names. An error says what is wrong with the reason or
// the end.
func NewFreeze(why string, now, until time.Time, zone *time.Location) (Freeze, error) {
	switch {
	case why == "":
		return Freeze{}, errors.New("a freeze needs a reason")
	case len(why) > longestReason:
		return Freeze{}, fmt.Errorf("the reason has %d bytes, at most %d are possible", len(why), longestReason)
	case until.IsZero():
		return Freeze{why: why, now: now, zone: zone}, nil
	case !until.After(now):
		return Freeze{}, fmt.Errorf("a freeze until %s would be over already", until.In(zone).Format(moment))
	}
	until = wholeMinute(until)
	if until.UTC().Year() > lastYear {
		return Freeze{}, fmt.Errorf("a freeze cannot end after the year %d: leave out the end", lastYear)
	}
	return Freeze{Until: until, why: why, now: now, zone: zone}, nil
}

func wholeMinute(t time.Time) time.Time {
	if whole := t.Truncate(time.Minute); !whole.Equal(t) {
		return whole.Add(time.Minute)
	}
	return t
}

// By returns the freeze with the name of the user; empty if nobody knows it.
func (f Freeze) By(user string) Freeze {
	f.who = user
	return f
}

// Gate returns the RolloutGate that holds one Rollout. A gate has no clock: the end of the
// freeze does not count.
func (f Freeze) Gate(namespace, rollout string) *v1alpha1.RolloutGate {
	return &v1alpha1.RolloutGate{
		ObjectMeta: f.metadata(namespace, "freeze-"+rollout, "Freeze"),
		Spec:       v1alpha1.RolloutGateSpec{RolloutRef: &v1alpha1.LocalObjectReference{Name: rollout}, Passing: new(false)},
	}
}

// Schedule returns the RolloutSchedule that holds the Rollouts of a namespace that the
// selector selects.
func (f Freeze) Schedule(namespace string, selector *metav1.LabelSelector) *v1alpha1.RolloutSchedule {
	return &v1alpha1.RolloutSchedule{ObjectMeta: f.metadata(namespace, f.name(), f.prettyName()), Spec: f.spec(selector)}
}

// ClusterSchedule returns the ClusterRolloutSchedule that holds the Rollouts of all
// namespaces that the selector selects.
func (f Freeze) ClusterSchedule(selector *metav1.LabelSelector) *v1alpha1.ClusterRolloutSchedule {
	return &v1alpha1.ClusterRolloutSchedule{
		ObjectMeta: f.metadata("", f.name(), f.prettyName()),
		Spec:       v1alpha1.ClusterRolloutScheduleSpec{RolloutScheduleSpec: f.spec(selector)},
	}
}

func (f Freeze) name() string { return f.now.In(f.zone).Format("freeze-20060102-1504") }

func (f Freeze) prettyName() string {
	if f.Until.IsZero() {
		return "Freeze"
	}
	return "Freeze until " + f.Until.In(f.zone).Format(moment)
}

func (f Freeze) metadata(namespace, name, prettyName string) metav1.ObjectMeta {
	description := f.why
	if f.who != "" {
		description += ", by " + f.who
	}
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels:      map[string]string{v1alpha1.ManagedByLabel: FreezeManager},
		Annotations: map[string]string{v1alpha1.PrettyNameAnnotation: prettyName, v1alpha1.DescriptionAnnotation: description},
	}
}

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
