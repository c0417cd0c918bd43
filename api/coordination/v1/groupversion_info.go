// SPDX-License-Identifier: Apache-2.0

// Package v1 contains the API types of apps.containerinfra.nl/v1: which Deployments roll
// out one at a time.
//
// The group, its kind and their meaning are those of an existing API, whose manifests
// keep working. All additions are optional.
//
// The package imports only apimachinery, so clients can use the types without depending
// on the controller.
//
// +kubebuilder:object:generate=true
// +groupName=apps.containerinfra.nl
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of every type in this package.
	GroupVersion = schema.GroupVersion{Group: "apps.containerinfra.nl", Version: "v1"}

	// SchemeBuilder collects the functions that add the types to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds every type of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &DeploymentCoordination{}, &DeploymentCoordinationList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
