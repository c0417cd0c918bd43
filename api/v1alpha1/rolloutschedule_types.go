// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScheduleAction says what a schedule does while one of its rules is active.
// +kubebuilder:validation:Enum=Allow;Deny
type ScheduleAction string

const (
	// ScheduleAllow lets promotions through while active, and only then.
	ScheduleAllow ScheduleAction = "Allow"
	// ScheduleDeny holds promotions back while active.
	ScheduleDeny ScheduleAction = "Deny"
)

// DayOfWeek is an English weekday.
// +kubebuilder:validation:Enum=Monday;Tuesday;Wednesday;Thursday;Friday;Saturday;Sunday
type DayOfWeek string

// TimeRange is a daily window by the wall clock.
type TimeRange struct {
	// start of the window, HH:MM, inclusive.
	// +kubebuilder:validation:Pattern="^([01]\\d|2[0-3]):[0-5]\\d$"
	// +required
	Start string `json:"start"`
	// end of the window, HH:MM, exclusive. At or before start it lies on the
	// next day; the same as start makes 24 hours.
	// +kubebuilder:validation:Pattern="^([01]\\d|2[0-3]):[0-5]\\d$"
	// +required
	End string `json:"end"`
}

// DateRange is a range of calendar days, both ends included.
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

// ScheduleRule is active while all of its parts are; an empty rule always is.
// A window over midnight belongs to the day on which it starts: daysOfWeek and
// dateRange are about that day.
type ScheduleRule struct {
	// name of the rule, shown while it is active.
	// +optional
	Name string `json:"name,omitempty"`
	// timeRange limits the rule to a part of the day.
	// +optional
	TimeRange *TimeRange `json:"timeRange,omitempty"`
	// daysOfWeek limits the rule to these days.
	// +listType=atomic
	// +optional
	DaysOfWeek []DayOfWeek `json:"daysOfWeek,omitempty"`
	// dateRange limits the rule to these dates.
	// +optional
	DateRange *DateRange `json:"dateRange,omitempty"`
}

// RolloutScheduleSpec says when which Rollouts may promote.
type RolloutScheduleSpec struct {
	// rolloutSelector selects Rollouts of the schedule's namespace by label.
	// +required
	RolloutSelector *metav1.LabelSelector `json:"rolloutSelector"`
	// rules make the schedule active while any one of them is. One that cannot
	// be evaluated closes the schedule.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	// +required
	Rules []ScheduleRule `json:"rules"`
	// timezone is the IANA name of the zone whose clocks the rules are read
	// from.
	// +kubebuilder:default=UTC
	// +optional
	Timezone string `json:"timezone,omitempty"`
	// action is Allow, to let promotions through while active and only then, or
	// Deny, to hold them back while active.
	// +kubebuilder:default=Deny
	// +optional
	Action ScheduleAction `json:"action,omitempty"`
}

// RolloutScheduleStatus is what a schedule does at present.
type RolloutScheduleStatus struct {
	// observedGeneration is the generation that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// lastHandledReconcileAt is the reconcile.fluxcd.io/requestedAt token that
	// was handled last.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
	// conditions summarise the schedule for people, kstatus and alerts.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// active is true while a rule is active.
	// +optional
	Active bool `json:"active,omitempty"`
	// activeRules names the rules that are active, in the order of the spec; one
	// without a name is called by its place, as in rules[0].
	// +listType=atomic
	// +optional
	ActiveRules []string `json:"activeRules,omitempty"`
	// nextTransition is when active flips next; absent if it never does.
	// +optional
	NextTransition *metav1.Time `json:"nextTransition,omitempty"`
	// managedGates names the gates that the schedule keeps, sorted; those of a
	// ClusterRolloutSchedule as namespace/name.
	// +listType=atomic
	// +optional
	ManagedGates []string `json:"managedGates,omitempty"`
	// matchingRollouts counts the Rollouts that the schedule applies to.
	// +optional
	MatchingRollouts int32 `json:"matchingRollouts,omitempty"`
}

// RolloutSchedule allows or denies promotions in its namespace by the clock.
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

	// spec says when which Rollouts may promote.
	// +optional
	Spec RolloutScheduleSpec `json:"spec,omitempty"`
	// status is what the schedule does at present.
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

// GetConditions returns the conditions, for Flux's condition functions.
func (s *RolloutSchedule) GetConditions() []metav1.Condition { return s.Status.Conditions }

// SetConditions replaces the conditions, for Flux's condition functions.
func (s *RolloutSchedule) SetConditions(conditions []metav1.Condition) {
	s.Status.Conditions = conditions
}
