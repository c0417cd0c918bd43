// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// unstarted says that nothing of these was started.
type unstarted []kustomization.Subject

func (u *unstarted) NotStarted(_ context.Context, subject kustomization.Subject) bool {
	*u = append(*u, subject)
	return true
}

func TestUnhealthyTargetIsAskedWhetherItWasStarted(t *testing.T) {
	running := fixture.MakeRollout("shop").History(fixture.MakeEntry("1.0.0").Deploying()).Obj()
	for want, target := range map[string]targets.Target{
		"Kustomization " + fixture.Namespace + "/web": {Kustomization: fixture.MakeKustomization("web").Obj()},
		"HelmRelease " + fixture.Namespace + "/web":   {HelmRelease: fixture.MakeHelmRelease("web").Obj()},
		"": {Repository: fixture.MakeRepository("web").Obj()},
	} {
		t.Run(target.Kind(), func(t *testing.T) {
			g, asked := NewWithT(t), &unstarted{}
			got := Gatherer{Started: asked}.notStarted(t.Context(), running, target, content.Target{Unhealthy: true})
			g.Expect(got).To(Equal(want != ""))
			if got {
				g.Expect(*asked).To(ConsistOf(HaveField("String()", want)))
			}
		})
	}
}

// What two Rollouts deploy says nothing about the release of one of them.
func TestCheckOfWhatSeveralRolloutsDeployIsShared(t *testing.T) {
	g := NewWithT(t)
	about := func(annotation string) v1alpha1.HealthCheck {
		check := fixture.MakeHealthCheck("web").Class(v1alpha1.HealthCheckClassKustomization).Obj()
		check.Annotations = map[string]string{annotation: "web"}
		return *check
	}
	shared := func(annotation string, release *fixture.HelmReleaseBuilder) map[string]bool {
		return shared([]targets.Target{{HelmRelease: release.Obj()}}, []v1alpha1.HealthCheck{about(annotation)})
	}
	byBoth := fixture.MakeHelmRelease("web").DrivenBy("shop", "a").DrivenBy("cart", "b")
	g.Expect(shared(v1alpha1.HelmReleaseAnnotation, byBoth)).To(Equal(map[string]bool{fixture.Namespace + "/web": true}))
	g.Expect(shared(v1alpha1.HelmReleaseAnnotation, fixture.MakeHelmRelease("web").DrivenBy("shop", "a"))).To(BeEmpty())
	g.Expect(shared(v1alpha1.KustomizationAnnotation, byBoth)).To(BeEmpty(), "that is something else")
}
