// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterRolloutScheduleSpec says when which Rollouts of which namespaces may
// promote.
type ClusterRolloutScheduleSpec struct {
	RolloutScheduleSpec `json:",inline"`

	// namespaceSelector selects namespaces by label; absent or empty selects
	// all.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// ClusterRolloutSchedule allows or denies promotions across namespaces by the
// clock.
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

	// spec says when which Rollouts may promote.
	// +optional
	Spec ClusterRolloutScheduleSpec `json:"spec,omitempty"`
	// status is what the schedule does at present.
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

// GetConditions returns the conditions, for Flux's condition functions.
func (s *ClusterRolloutSchedule) GetConditions() []metav1.Condition { return s.Status.Conditions }

// SetConditions replaces the conditions, for Flux's condition functions.
func (s *ClusterRolloutSchedule) SetConditions(conditions []metav1.Condition) {
	s.Status.Conditions = conditions
}
