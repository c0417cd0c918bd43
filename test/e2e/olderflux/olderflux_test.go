// SPDX-License-Identifier: Apache-2.0

// Package olderflux tells a story where Flux serves images as it did before 2.7.
package olderflux

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/stage"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestMain(m *testing.M) { os.Exit(fixture.ExitCode(m.Run())) }

// Flux 2.6 serves the image kinds at v1beta2 and not at v1.
func TestAReleaseGoesAllTheWayWhereImagesAreServedAtV1Beta2Only(t *testing.T) {
	older := stage.StartFor(t, controlplane.Options{Flux: true, ImageScanner: true, ImageVersion: controlplane.ImageV1Beta2})
	s := stage.New(t, older)
	s.CreateFlux()
	s.Create(s.Rollout())
	s.Publish(s.ConfigRelease("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	s.Publish(s.ConfigRelease("1.1.0"))
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)

	applied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	s.Read(applied)
	if got := applied.Data["version"]; got != "1.1.0" {
		t.Errorf("version %q was applied, want 1.1.0", got)
	}
}
