// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// inVain is what kustomize-controller says after it has waited for the health of what it
// applied.
const inVain = "health check failed after 30.1s: timeout waiting for: [Deployment/prod/web status: 'InProgress']"

func TestKustomizationBecomesUnhealthy(t *testing.T) {
	unhealthy := func(b *fixture.KustomizationBuilder) *fixture.KustomizationBuilder {
		return b.Generation(2).Attempted(fixture.Revision("1.1.0")).Condition(meta.ReadyCondition, no, 2, inVain).Because(meta.HealthCheckFailedReason)
	}
	consumer := func() *fixture.KustomizationBuilder { return unhealthy(fixture.MakeKustomization("web")) }
	variable := func() *fixture.KustomizationBuilder {
		return unhealthy(fixture.MakeKustomization("web").DrivenBy("web", "TAG").Substitute("TAG", "1.1.0"))
	}
	ours := func() *fixture.RepositoryBuilder {
		return fixture.MakeRepository("web").DrivenBy("web").Tag("1.1.0").Pulled(fixture.Revision("1.1.0"))
	}
	other := fixture.MakeRepository("web").Tag("1.1.0").Pulled(fixture.Revision("1.1.0"))
	for name, tt := range map[string]struct {
		kustomization *fixture.KustomizationBuilder
		source        *fixture.RepositoryBuilder
		want          bool
	}{
		"with the revision of a source that the Rollout writes": {consumer(), ours(), true},
		"not with the revision before":                          {consumer().Attempted(fixture.Revision("1.0.0")), ours(), false},
		"not if it could not be applied":                        {consumer().Because(meta.ReconciliationFailedReason), ours(), false},
		"not if spec.healthChecks is invalid": {
			consumer().Condition(meta.ReadyCondition, no, 2, "unexpected GroupVersion string: a/b/c").Because(meta.HealthCheckFailedReason), ours(), false,
		},
		"not if Flux could not begin to wait": {
			consumer().Condition(meta.ReadyCondition, no, 2, "unable to update the healthy status to progressing: timeout").
				Because(meta.HealthCheckFailedReason), ours(), false,
		},
		"with a variable, in a pass that knew of the write":            {variable().Requested("now", "now"), other, true},
		"not with a variable, in a pass that began before the write":   {variable().Requested("now", "before"), other, false},
		"not with a variable, if nothing shows which pass that was":    {variable(), other, false},
		"not if a source that the Rollout writes is not pulled so far": {consumer(), ours().Pulled(fixture.Revision("1.0.0")), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target := targets.Target{Kustomization: tt.kustomization.Obj(), Source: tt.source.Obj()}
			seen := target.Observe(fixture.MakeRollout("web").Obj(), byTag("1.1.0"))
			g.Expect(seen.Unhealthy).To(Equal(tt.want))
			g.Expect(seen.Reason == v1alpha1.TargetUnhealthy).To(Equal(tt.want), string(seen.Reason))
		})
	}
}

// A rollback begins when Flux has stopped waiting for the release that failed.
func TestHowLongFluxWaits(t *testing.T) {
	waiting := func(change func(*kustomizev1.KustomizationSpec)) targets.Target {
		k := fixture.MakeKustomization("web").Obj()
		k.Spec.Interval.Duration = 10 * time.Minute
		change(&k.Spec)
		return targets.Target{Kustomization: k}
	}
	chart := func(change func(*helmv2.HelmReleaseSpec)) targets.Target {
		h := fixture.MakeHelmRelease("web").Obj()
		change(&h.Spec)
		return targets.Target{HelmRelease: h}
	}
	minutes := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Minute} }
	for name, tt := range map[string]struct {
		target targets.Target
		want   time.Duration
	}{
		"a Kustomization that does not wait": {waiting(func(s *kustomizev1.KustomizationSpec) { s.Timeout = minutes(3) }), 0},
		"one that waits for its timeout":     {waiting(func(s *kustomizev1.KustomizationSpec) { s.Wait, s.Timeout = true, minutes(3) }), 3 * time.Minute},
		"one that waits without a timeout":   {waiting(func(s *kustomizev1.KustomizationSpec) { s.Wait = true }), 9*time.Minute + 30*time.Second},
		"one that waits for some of its objects": {waiting(func(s *kustomizev1.KustomizationSpec) {
			s.HealthChecks, s.Timeout = []meta.NamespacedObjectKindReference{{Kind: "Deployment", Name: "web"}}, minutes(2)
		}), 2 * time.Minute},
		"a HelmRelease, by default": {chart(func(*helmv2.HelmReleaseSpec) {}), 5 * time.Minute},
		"one with a timeout":        {chart(func(s *helmv2.HelmReleaseSpec) { s.Upgrade = &helmv2.Upgrade{Timeout: minutes(7)} }), 7 * time.Minute},
		"one that does not wait":    {chart(func(s *helmv2.HelmReleaseSpec) { s.Upgrade = &helmv2.Upgrade{DisableWait: true} }), 0},
		"an OCIRepository":          {targets.Target{Repository: fixture.MakeRepository("web").Obj()}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(tt.target.Observe(fixture.MakeRollout("web").Obj(), byTag("1.1.0")).Waits).To(Equal(tt.want))
		})
	}
}
