// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestManifestsAreTheYAMLFilesOfAllFoldersButTheSkipped(t *testing.T) {
	folder := fstest.MapFS{
		"kustomization.yaml":         {Data: []byte("root")},
		"default/kustomization.yaml": {Data: []byte("default")},
		"default/default_test.go":    {Data: []byte("package it")},
		"samples/rollout.yaml":       {Data: []byte("sample")},
	}
	got, err := Manifests(folder, "samples")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"kustomization.yaml": "root", "default/kustomization.yaml": "default"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("manifests (-want +got):\n%s", diff)
	}
}

// The expected digest is fixed in the test to detect any change of the bytes: users see
// an artifact with another digest as another release.
func TestBytesOfAnArtifactStayTheSame(t *testing.T) {
	a := Artifact{
		Files:       map[string]string{"b.yaml": "b: 2\n", "a/a.yaml": "a: 1\n"},
		Annotations: map[string]string{RevisionAnnotation: "v1", CreatedAnnotation: "2026-01-02T15:04:05Z"},
	}
	image, err := a.image()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if want := "sha256:394c47d356cacad41f242425e48164dbc87d47d42beef8aa4c2eae8a26aa4f2f"; digest.String() != want {
		t.Errorf("digest %s, want %s", digest, want)
	}
}
