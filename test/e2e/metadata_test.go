// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// This test does not run in parallel with others, because they have no login.
func TestRegistryThatWantsALoginGivesTheMetadata(t *testing.T) {
	s := env.New(t, plane)
	plane.Registry.RequireLogin("flux", "secret")
	t.Cleanup(func() { plane.Registry.RequireLogin("", "") })
	login := meta.LocalObjectReference{Name: "login"}
	for _, object := range s.Flux(plane.Registry.Host()) {
		switch o := object.(type) {
		case *imagev1.ImageRepository:
			s.Create(loginSecret(s, login.Name))
			o.Spec.SecretRef = &login
		case *sourcev1.OCIRepository:
			o.Spec.SecretRef = &login
		}
		s.Create(object)
	}
	s.Create(s.Rollout())
	for _, version := range []string{"1.0.0", "1.1.0"} {
		release := s.ConfigRelease(version)
		release.Annotations = map[string]string{
			"org.opencontainers.image.revision": "main@sha1:" + version,
			"org.opencontainers.image.version":  version,
			"org.opencontainers.image.title":    "Shop " + version,
		}
		s.Publish(release)
		s.AwaitState(version, v1alpha1.BakeSucceeded)
	}

	rollout := s.Await("the metadata of both releases", func(r *v1alpha1.Rollout) bool {
		return r.Status.Title != nil && *r.Status.Title == "Shop 1.1.0" && len(described(r.Status.AvailableReleases)) == 2
	})
	if diff := cmp.Diff([]string{"1.0.0 of main@sha1:1.0.0", "1.1.0 of main@sha1:1.1.0"}, described(rollout.Status.AvailableReleases)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	for _, entry := range rollout.Status.History {
		if len(described([]v1alpha1.VersionInfo{entry.Version})) == 0 {
			t.Errorf("the entry of %s has no metadata: %+v", entry.Version.Tag, entry.Version)
		}
	}
	if got, want := *rollout.Status.ArtifactType, "application/vnd.cncf.flux.config.v1+json"; got != want {
		t.Errorf("the artifact type is %s, want %s", got, want)
	}
}

// described returns the version and the revision of the releases whose metadata is
// complete.
func described(releases []v1alpha1.VersionInfo) []string {
	var reported []string
	for _, r := range releases {
		if r.Digest != nil && r.Version != nil && r.Revision != nil && r.Created != nil {
			reported = append(reported, *r.Version+" of "+*r.Revision)
		}
	}
	return reported
}

// loginSecret returns a pull secret for the registry.
func loginSecret(s *env.Env, name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Type:       corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{corev1.DockerConfigJsonKey: `{"auths":{"` + plane.Registry.Host() +
			`":{"username":"flux","password":"secret"}}}`},
	}
}
