// SPDX-License-Identifier: Apache-2.0

// Package imagepolicy reads which releases a Flux ImagePolicy offers.
package imagepolicy

import (
	"fmt"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// servedVersions are the supported versions of image.toolkit.fluxcd.io, the preferred one
// first. The fields that are read have the same shape in both. Flux 2.6 serves only
// v1beta2, Flux 2.9 only v1.
var servedVersions = []string{"v1", "v1beta2"}

// AddImageTypes registers ImagePolicy and ImageRepository with the scheme, in the version
// that the API server serves, and returns that version. It returns an error if the server
// serves neither.
func AddImageTypes(scheme *runtime.Scheme, mapper meta.RESTMapper) (schema.GroupVersion, error) {
	kind := schema.GroupKind{Group: imagev1.GroupVersion.Group, Kind: imagev1.ImagePolicyKind}
	for _, version := range servedVersions {
		mapping, err := mapper.RESTMapping(kind, version)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return schema.GroupVersion{}, fmt.Errorf("look up %s: %w", kind, err)
		}
		gv := mapping.GroupVersionKind.GroupVersion()
		addImageTypes(scheme, gv)
		return gv, nil
	}
	return schema.GroupVersion{}, fmt.Errorf(
		"the API server serves no %s: install Flux's image-reflector-controller (Flux 2.6 or newer)", kind)
}

func addImageTypes(scheme *runtime.Scheme, gv schema.GroupVersion) {
	scheme.AddKnownTypes(gv,
		&imagev1.ImagePolicy{}, &imagev1.ImagePolicyList{},
		&imagev1.ImageRepository{}, &imagev1.ImageRepositoryList{},
	)
	metav1.AddToGroupVersion(scheme, gv)
}
