// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// sample returns the objects of the sample, in the namespace and the registry of a test.
func sample(t *testing.T, s *env.Env) []client.Object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts.Root(), "config", "samples", "monorepo", "application.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	image := s.ImageRepository(plane.Registry.Host()).Spec.Image
	text = []byte(strings.NewReplacer("registry.example.com/manifests/shop", image, "amespace: shop", "amespace: "+s.Namespace).Replace(string(text)))
	decode := serializer.NewCodecFactory(plane.Client().Scheme()).UniversalDeserializer()
	var all []client.Object
	for _, document := range bytes.Split(text, []byte("---\n")) {
		object, _, err := decode.Decode(document, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		switch o := object.(type) {
		case *imagev1.ImageRepository:
			o.Spec.Insecure = true
		case *sourcev1.OCIRepository:
			o.Spec.Insecure = true
		}
		all = append(all, object.(client.Object))
	}
	return all
}

// Each part of the sample is a target, and the bake begins once all have applied the release.
func TestSampleOfAMonorepo(t *testing.T) {
	s := env.New(t, plane)
	s.Create(s.NamespaceObject())
	s.Create(sample(t, s)...)
	s.Publish(s.ConfigRelease("1.0.0"))
	builds(t, s, pulls(t, s, "1.0.0"))
	rollout := s.AwaitState("1.0.0", v1alpha1.BakeInProgress)
	applied := map[string]v1alpha1.TargetState{}
	for _, target := range rollout.Status.Targets {
		if target.Kind == kustomizev1.KustomizationKind {
			applied[target.Name] = target.State
		}
	}
	if len(applied) != 2 || applied["cart"] != v1alpha1.TargetApplied || applied["web"] != v1alpha1.TargetApplied {
		t.Errorf("the parts are %v", applied)
	}
}
