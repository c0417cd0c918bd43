// SPDX-License-Identifier: Apache-2.0

// Package olderflux tests a scenario with the API versions for images that Flux served
// before 2.7.
package olderflux

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestMain(m *testing.M) { os.Exit(fixture.ExitCode(m.Run())) }

// Flux 2.6 serves the image kinds at v1beta2 and not at v1. Its own scanner is not
// published as a Go module, and the newer one that the other suites run reads only v1. So
// the test itself writes the status of a scan, which has the same fields in both
// versions.
func TestReleaseGoesAllTheWayWhereImagesAreServedAtV1Beta2Only(t *testing.T) {
	older := env.StartFor(t, controlplane.Options{Flux: true, ImageVersion: controlplane.ImageV1Beta2})
	s := env.New(t, older)
	s.CreateFlux()
	s.Create(s.Rollout())
	publish(s, "1.0.0")
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	publish(s, "1.1.0", "1.0.0")
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)

	applied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	s.Read(applied)
	if got := applied.Data["version"]; got != "1.1.0" {
		t.Errorf("version %q was applied, want 1.1.0", got)
	}
}

// publish pushes a version and writes the status that a scan would write.
func publish(s *env.Env, version string, older ...string) {
	s.T.Helper()
	digest := s.Push(s.ConfigRelease(version))
	repository, policy := s.ImageRepository(""), s.ImagePolicy("")
	s.ChangeStatus(repository, func() {
		repository.Status = fixture.MakeScan(s.Name).Found(append([]string{version}, older...)...).Obj().Status
		repository.Status.CanonicalImageName = repository.Spec.Image
	})
	s.ChangeStatus(policy, func() {
		policy.Status = fixture.MakePolicy(s.Name).Latest(version).Digest(digest).Obj().Status
		policy.Status.LatestRef.Name = repository.Spec.Image
	})
}
