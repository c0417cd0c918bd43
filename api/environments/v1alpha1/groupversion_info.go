// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains the API types of environments.kuberik.com/v1alpha1: which
// environments a release must have passed before it may go to another one.
//
// The group, its kind and their meaning are those of an existing API, whose manifests
// keep working. All additions are optional.
//
// The package imports only apimachinery and the types of Rollouts, so clients can use the
// types without depending on the controller.
//
// +kubebuilder:object:generate=true
// +groupName=environments.kuberik.com
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of every type in this package.
	GroupVersion = schema.GroupVersion{Group: "environments.kuberik.com", Version: "v1alpha1"}

	// SchemeBuilder collects the functions that add the types to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds every type of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Environment{}, &EnvironmentList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
