// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"

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
			seen := target.Observe(fixture.MakeRollout("web").Obj(), "1.1.0")
			g.Expect(seen.Unhealthy).To(Equal(tt.want))
			g.Expect(seen.Reason == v1alpha1.TargetUnhealthy).To(Equal(tt.want), string(seen.Reason))
		})
	}
}
