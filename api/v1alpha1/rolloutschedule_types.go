// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScheduleAction defines what a schedule does while one of its rules is active.
// +kubebuilder:validation:Enum=Allow;Deny
type ScheduleAction string

const (
	// ScheduleAllow allows promotions only while the schedule is active.
	ScheduleAllow ScheduleAction = "Allow"
	// ScheduleDeny holds back promotions while the schedule is active.
	ScheduleDeny ScheduleAction = "Deny"
)

// DayOfWeek is an English weekday.
// +kubebuilder:validation:Enum=Monday;Tuesday;Wednesday;Thursday;Friday;Saturday;Sunday
type DayOfWeek string

// Month is the English name of a month.
// +kubebuilder:validation:Enum=January;February;March;April;May;June;July;August;September;October;November;December
type Month string

// DayOfMonth counts from the first day, which is 1, or from the last, which is -1.
// +kubebuilder:validation:Minimum=-31
// +kubebuilder:validation:Maximum=31
// +kubebuilder:validation:XValidation:rule="self != 0",message="days of a month count from 1, or from -1 for the last day"
type DayOfMonth int32

// WeekOfMonth counts the days of a week in a month: 1 is the first of them, -1 the last.
// +kubebuilder:validation:Minimum=-5
// +kubebuilder:validation:Maximum=5
// +kubebuilder:validation:XValidation:rule="self != 0",message="weeks of a month count from 1, or from -1 for the last week"
type WeekOfMonth int32

// TimeRange is a time window, by the clocks of the schedule's time zone.
type TimeRange struct {
	// start is the start of the window, HH:MM, inclusive.
	// +kubebuilder:validation:Pattern="^([01]\\d|2[0-3]):[0-5]\\d$"
	// +required
	Start string `json:"start"`
	// end is the end of the window, HH:MM, exclusive. If it is before start, the window
	// ends on the next day. If it is the same as start, the window is 24 hours long.
	// +kubebuilder:validation:Pattern="^([01]\\d|2[0-3]):[0-5]\\d$"
	// +required
	End string `json:"end"`
	// endDay is the day on which the window ends, if it lasts longer: the first such day on
	// which end is after the start, at most a week later.
	// +optional
	EndDay DayOfWeek `json:"endDay,omitempty"`
}

// EveryWeeks is one week of several, such as a week of each sprint.
type EveryWeeks struct {
	// count is how many weeks it is from the start of one of these weeks to the next.
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=52
	// +required
	Count int32 `json:"count"`
	// since is the first day of the first of these weeks, YYYY-MM-DD. A week is that day and the
	// six that follow. There is none before.
	// +kubebuilder:validation:Pattern="^\\d{4}-\\d{2}-\\d{2}$"
	// +required
	Since string `json:"since"`
}

// DateRange is a range of calendar days. It includes both ends.
type DateRange struct {
	// start is the first day, YYYY-MM-DD.
	// +kubebuilder:validation:Pattern="^\\d{4}-\\d{2}-\\d{2}$"
	// +required
	Start string `json:"start"`
	// end is the last day, YYYY-MM-DD.
	// +kubebuilder:validation:Pattern="^\\d{4}-\\d{2}-\\d{2}$"
	// +required
	End string `json:"end"`
}

// ScheduleRule is active while all of its parts are active. An empty rule is always
// active. A window over midnight belongs to the day on which it starts: all fields about days
// refer to that day.
// +kubebuilder:validation:XValidation:rule="!has(self.weeksOfMonth) || size(self.weeksOfMonth) == 0 || has(self.daysOfWeek) && size(self.daysOfWeek) > 0",message="weeksOfMonth needs daysOfWeek: it selects the first Friday, or the last"
type ScheduleRule struct {
	// name is the name of the rule. It is shown while the rule is active.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
	// timeRange limits the rule to a part of the day.
	// +optional
	TimeRange *TimeRange `json:"timeRange,omitempty"`
	// daysOfWeek limits the rule to these days.
	// +kubebuilder:validation:MaxItems=7
	// +listType=atomic
	// +optional
	DaysOfWeek []DayOfWeek `json:"daysOfWeek,omitempty"`
	// weeksOfMonth limits the rule to some of the daysOfWeek in each month: 1 with Friday is the
	// first Friday, -1 the last.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	WeeksOfMonth []WeekOfMonth `json:"weeksOfMonth,omitempty"`
	// daysOfMonth limits the rule to these days: 1 is the first of the month, -1 the last.
	// +kubebuilder:validation:MaxItems=31
	// +listType=atomic
	// +optional
	DaysOfMonth []DayOfMonth `json:"daysOfMonth,omitempty"`
	// months limits the rule to these months.
	// +kubebuilder:validation:MaxItems=12
	// +listType=atomic
	// +optional
	Months []Month `json:"months,omitempty"`
	// everyWeeks limits the rule to one week of several, such as a week of each sprint.
	// +optional
	EveryWeeks *EveryWeeks `json:"everyWeeks,omitempty"`
	// dateRange limits the rule to these dates.
	// +optional
	DateRange *DateRange `json:"dateRange,omitempty"`
}

// RolloutScheduleSpec defines which Rollouts may promote, and when.
// +kubebuilder:validation:XValidation:rule="size(self.rules) + (has(self.exceptions) ? size(self.exceptions) : 0) <= 200",message="rules and exceptions may be up to 200 together"
type RolloutScheduleSpec struct {
	// rolloutSelector selects Rollouts in the schedule's namespace by their labels.
	// +required
	RolloutSelector *metav1.LabelSelector `json:"rolloutSelector"`
	// rules make the schedule active while at least one of them is active, and no exception. A
	// rule that cannot be evaluated closes the schedule. There may be up to 200 rules and
	// exceptions.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=200
	// +listType=atomic
	// +required
	Rules []ScheduleRule `json:"rules"`
	// exceptions are rules that make the schedule inactive while one of them is active: a
	// window in a freeze, or a holiday in the working hours.
	// +kubebuilder:validation:MaxItems=199
	// +listType=atomic
	// +optional
	Exceptions []ScheduleRule `json:"exceptions,omitempty"`
	// timezone is the IANA name of the time zone in which the rules are evaluated.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:default=UTC
	// +optional
	Timezone string `json:"timezone,omitempty"`
	// action is Allow to allow promotions only while the schedule is active, or Deny to
	// hold them back while it is active.
	// +kubebuilder:default=Deny
	// +optional
	Action ScheduleAction `json:"action,omitempty"`
}

// RolloutScheduleStatus is the current state of a schedule.
type RolloutScheduleStatus struct {
	// observedGeneration is the generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// lastHandledReconcileAt is the reconcile.fluxcd.io/requestedAt token that was
	// handled last.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
	// conditions summarise the schedule for users, kstatus and alerts.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// active is true while a rule is active, and no exception.
	// +optional
	Active bool `json:"active,omitempty"`
	// activeRules names the active rules in the order of the spec. A rule without a name
	// is shown by its position, for example rules[0]. It is absent during an exception.
	// +listType=atomic
	// +optional
	ActiveRules []string `json:"activeRules,omitempty"`
	// activeExceptions names the active exceptions while a rule would make the schedule active.
	// +listType=atomic
	// +optional
	ActiveExceptions []string `json:"activeExceptions,omitempty"`
	// nextTransition is when active changes next. It is absent if it never changes.
	// +optional
	NextTransition *metav1.Time `json:"nextTransition,omitempty"`
	// managedGates names the gates that the schedule manages, sorted. For a
	// ClusterRolloutSchedule, they are given as namespace/name.
	// +listType=atomic
	// +optional
	ManagedGates []string `json:"managedGates,omitempty"`
	// matchingRollouts counts the Rollouts that the schedule applies to.
	// +optional
	MatchingRollouts int32 `json:"matchingRollouts,omitempty"`
}

// RolloutSchedule allows or denies promotions in its namespace at certain times.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=fluxcd;fluxcd-rollouts
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=`.spec.action`
// +kubebuilder:printcolumn:name="Active",type=boolean,JSONPath=`.status.active`
// +kubebuilder:printcolumn:name="Matching",type=integer,JSONPath=`.status.matchingRollouts`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextTransition`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type RolloutSchedule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines which Rollouts may promote, and when.
	// +optional
	Spec RolloutScheduleSpec `json:"spec,omitempty"`
	// status is the current state of the schedule.
	// +optional
	Status RolloutScheduleStatus `json:"status,omitempty"`
}

// RolloutScheduleList is a list of RolloutSchedules.
//
// +kubebuilder:object:root=true
type RolloutScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RolloutSchedule `json:"items"`
}

// GetConditions returns the conditions. Flux's condition functions call it.
func (s *RolloutSchedule) GetConditions() []metav1.Condition { return s.Status.Conditions }

// SetConditions replaces the conditions. Flux's condition functions call it.
func (s *RolloutSchedule) SetConditions(conditions []metav1.Condition) {
	s.Status.Conditions = conditions
}
