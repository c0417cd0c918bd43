// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterRolloutScheduleSpec defines which Rollouts of which namespaces may promote, and
// when.
type ClusterRolloutScheduleSpec struct {
	RolloutScheduleSpec `json:",inline"`

	// namespaceSelector selects namespaces by their labels. If it is absent or empty, it
	// selects all namespaces.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// ClusterRolloutSchedule allows or denies promotions across namespaces at certain times.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=fluxcd;fluxcd-rollouts
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=`.spec.action`
// +kubebuilder:printcolumn:name="Active",type=boolean,JSONPath=`.status.active`
// +kubebuilder:printcolumn:name="Matching",type=integer,JSONPath=`.status.matchingRollouts`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextTransition`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterRolloutSchedule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines which Rollouts may promote, and when.
	// +optional
	Spec ClusterRolloutScheduleSpec `json:"spec,omitempty"`
	// status is the current state of the schedule.
	// +optional
	Status RolloutScheduleStatus `json:"status,omitempty"`
}

// ClusterRolloutScheduleList is a list of ClusterRolloutSchedules.
//
// +kubebuilder:object:root=true
type ClusterRolloutScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterRolloutSchedule `json:"items"`
}

// GetConditions returns the conditions. Flux's condition functions call it.
func (s *ClusterRolloutSchedule) GetConditions() []metav1.Condition { return s.Status.Conditions }

// SetConditions replaces the conditions. Flux's condition functions call it.
func (s *ClusterRolloutSchedule) SetConditions(conditions []metav1.Condition) {
	s.Status.Conditions = conditions
}
