// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// absent stands for a metric that is not shown.
const absent = -1

func valueOf(t *testing.T, from *metrics.Rollouts, name string) float64 {
	t.Helper()
	for _, family := range gathered(t, from) {
		if family.GetName() == name {
			m := family.GetMetric()[0]
			if family.GetType() == dto.MetricType_COUNTER {
				return m.GetCounter().GetValue()
			}
			return m.GetGauge().GetValue()
		}
	}
	return absent
}

func TestOverridesAreCountedOnce(t *testing.T) {
	for outcome, want := range map[v1alpha1.ApprovalOutcome]float64{
		v1alpha1.OutcomeOverridden: 1, v1alpha1.OutcomeApproved: 0, v1alpha1.OutcomeNotNeeded: 0, v1alpha1.OutcomeMissing: 0,
	} {
		t.Run(string(outcome), func(t *testing.T) {
			m := metrics.NewRollouts((&fixture.Clock{}).Now)
			before, after := fixture.MakeRollout("shop").Obj(), fixture.MakeRollout("shop").History(fixture.MakeEntry("1.0.0")).Obj()
			after.Status.History[0].Approval = &v1alpha1.ApprovalRecord{Outcome: outcome}
			m.Observe(metrics.Pass{Before: before, Stored: after, Status: &after.Status, Decision: acts(promotion.Promote)})
			m.Observe(metrics.Pass{Before: after, Stored: after, Status: &after.Status, Decision: acts(promotion.StartBake)})
			m.Observe(metrics.Pass{Before: after, Status: &after.Status, Decision: acts(promotion.Nothing)})
			if diff := cmp.Diff(want, valueOf(t, m, "rollout_overrides_total")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestIdentityIsUnverifiedWhileARolloutDependsOnIt(t *testing.T) {
	m := metrics.NewRollouts((&fixture.Clock{}).Now)
	shop, cart := fixture.MakeRollout("shop").Obj(), fixture.MakeRollout("cart").Obj()
	see := func(rollout *v1alpha1.Rollout, verified *bool) float64 {
		m.Observe(metrics.Pass{Before: rollout, Status: &rollout.Status, Verified: verified})
		return valueOf(t, m, "rollout_approval_identity_verified")
	}
	yes, no := true, false
	got := []float64{see(shop, nil), see(shop, &yes), see(shop, &no), see(cart, &yes), see(shop, &yes)}
	if diff := cmp.Diff([]float64{absent, 1, 0, 0, 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func acts(action promotion.Action) promotion.Decision {
	return promotion.Decision{Outcome: promotion.Outcome{Action: action}}
}
