// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client returns a client with all permissions. Its scheme has the built-in kinds, CRDs,
// Flux's sources, Kustomizations and HelmReleases, and the image kinds. The Go types of
// the image kinds are those of v1, whichever version is served.
func (c *ControlPlane) Client() client.Client { return c.client }

func newClient(config *rest.Config, images ImageVersion) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme,
		apiextensionsv1.AddToScheme,
		sourcev1.AddToScheme, generatorv1.AddToScheme,
		kustomizev1.AddToScheme,
		helmv2.AddToScheme,
		images.addToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register kinds: %w", err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return c, nil
}

// addToScheme registers the Go types of v1 under the served version. The kinds have the
// same shape in both versions.
func (v ImageVersion) addToScheme(scheme *runtime.Scheme) error {
	served := schema.GroupVersion{Group: imagev1.GroupVersion.Group, Version: string(v)}
	scheme.AddKnownTypes(served,
		&imagev1.ImageRepository{}, &imagev1.ImageRepositoryList{},
		&imagev1.ImagePolicy{}, &imagev1.ImagePolicyList{},
	)
	metav1.AddToGroupVersion(scheme, served)
	return nil
}
