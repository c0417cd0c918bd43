// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RolloutGateSpec defines which releases a gate allows.
type RolloutGateSpec struct {
	// rolloutRef names the Rollout, in the gate's own namespace, whose releases the gate
	// holds back.
	// +required
	RolloutRef *LocalObjectReference `json:"rolloutRef"`

	// passing is false to hold back every release. Defaults to true.
	// +kubebuilder:default=true
	// +required
	Passing *bool `json:"passing"`

	// allowedVersions are the tags that may be promoted. If it is absent, the gate does
	// not filter by version. If it is empty, the gate allows nothing.
	// +listType=atomic
	// +optional
	AllowedVersions *[]string `json:"allowedVersions,omitempty"`

	// approvals are the approvals that a release needs. If it is absent, it needs none.
	// +optional
	Approvals *Approvals `json:"approvals,omitempty"`
}

// RolloutGateStatus is empty. The status of the Rollout shows how a gate was evaluated.
type RolloutGateStatus struct{}

// RolloutGate holds back the automatic promotions of one Rollout.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=fluxcd;fluxcd-rollouts
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.spec.rolloutRef.name`
// +kubebuilder:printcolumn:name="Passing",type=boolean,JSONPath=`.spec.passing`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RolloutGate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines which releases the gate allows.
	// +optional
	Spec RolloutGateSpec `json:"spec,omitempty"`
	// status is empty.
	// +optional
	Status RolloutGateStatus `json:"status,omitempty"`
}

// RolloutGateList is a list of RolloutGates.
//
// +kubebuilder:object:root=true
type RolloutGateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RolloutGate `json:"items"`
}

// IsPassing reports whether the gate allows any release at all.
func (g *RolloutGate) IsPassing() bool {
	return g.Spec.Passing == nil || *g.Spec.Passing
}

// RolloutName returns the name of the Rollout whose releases the gate holds back.
func (g *RolloutGate) RolloutName() string {
	if g.Spec.RolloutRef == nil {
		return ""
	}
	return g.Spec.RolloutRef.Name
}
