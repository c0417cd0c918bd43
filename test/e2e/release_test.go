// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// image returns the image that the application's Deployment runs.
func (s *stage) image() string {
	s.t.Helper()
	deployment := &appsv1.Deployment{}
	if err := plane.Client().Get(s.t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: s.Name}, deployment); err != nil {
		s.t.Fatal(err)
	}
	return deployment.Spec.Template.Spec.Containers[0].Image
}

func TestReleaseIsCarriedAllTheWay(t *testing.T) {
	s := newStage(t)
	s.create(s.Flux(plane.Registry.Host())...)
	s.create(s.HealthCheck(), s.Rollout(s.Baked(2*time.Second, time.Minute)))
	for _, version := range []string{"1.0.0", "1.1.0"} {
		s.release(version)
		s.awaitState(version, v1alpha1.BakeSucceeded)
		if got, want := s.image(), "registry.example/shop:"+version; got != want {
			t.Errorf("the Deployment runs %s, want %s", got, want)
		}
	}
}
