// SPDX-License-Identifier: Apache-2.0

package imagescanner

import (
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AddToScheme registers the Go types of v1 under the version that is served;
// in what both have, v1beta2 is the same.
func AddToScheme(scheme *runtime.Scheme, version string) error {
	served := schema.GroupVersion{Group: imagev1.GroupVersion.Group, Version: version}
	scheme.AddKnownTypes(served,
		&imagev1.ImageRepository{}, &imagev1.ImageRepositoryList{},
		&imagev1.ImagePolicy{}, &imagev1.ImagePolicyList{},
	)
	metav1.AddToGroupVersion(scheme, served)
	return nil
}
