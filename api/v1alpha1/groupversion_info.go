// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains the API types of kuberik.com/v1alpha1: what a Rollout
// promotes, what may hold back a promotion, and how its health is evaluated.
//
// The package imports only apimachinery, so clients can use the types without depending
// on the controller.
//
// +kubebuilder:object:generate=true
// +groupName=kuberik.com
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of every type in this package.
	GroupVersion = schema.GroupVersion{Group: "kuberik.com", Version: "v1alpha1"}

	// SchemeBuilder collects the functions that add the types to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds every type of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Rollout{}, &RolloutList{},
		&RolloutGate{}, &RolloutGateList{},
		&RolloutApproval{}, &RolloutApprovalList{},
		&ClusterRolloutGate{}, &ClusterRolloutGateList{},
		&HealthCheck{}, &HealthCheckList{},
		&RolloutSchedule{}, &RolloutScheduleList{},
		&ClusterRolloutSchedule{}, &ClusterRolloutScheduleList{},
		&ReleaseQuarantine{}, &ReleaseQuarantineList{},
		&ClusterReleaseQuarantine{}, &ClusterReleaseQuarantineList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
