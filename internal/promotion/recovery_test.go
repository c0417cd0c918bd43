// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestPromotionsThatCannotFail(t *testing.T) {
	unhealthy := func() *fixture.HealthCheckBuilder { return check("db").Unhealthy() }
	for name, test := range map[string]struct {
		given *situation
		want  string
	}{
		"not the first":                            {given(rollout().Ledger("1.0.0")).checks(unhealthy()), ""},
		"the first by hand, next to Unhealthy":     {given(rollout().Pin("1.0.0")).checks(unhealthy()), v1alpha1.DeployedWithUnhealthyHealthChecksReason},
		"not after a success":                      {given(upgrade()), ""},
		"not by hand while all is well":            {given(upgrade().Pin("1.1.0")).checks(check("db").Healthy()), ""},
		"by hand, next to Unhealthy":               {given(upgrade().Pin("1.1.0")).checks(unhealthy()), v1alpha1.DeployedWithUnhealthyHealthChecksReason},
		"by hand, after a failure":                 {given(failed().Pin("1.0.0")), v1alpha1.PreviousBakeFailedReason},
		"automatic, after a failure was unblocked": {given(failed().Annotate(unblock, "true")), v1alpha1.PreviousBakeFailedReason},
		"not after a cancelled one": {
			given(rollout().Pin("1.2.0").History(entry("1.1.0").Cancelled(), entry("1.0.0").Failed())), "",
		},
		"not when it supersedes a running one": {
			given(rollout().BakeTime(time.Hour).Pin("1.2.0").History(entry("1.1.0").Deploying(), entry("1.0.0").Failed())), "",
		},
		"not what is adopted": {given(rollout().Ledger("1.0.0")).owned("1.0.0").checks(unhealthy()), ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			if !d.Action.Promotes() {
				t.Fatalf("nothing is promoted: %v", d)
			}
			got := ""
			if d.Recovery != nil {
				got = d.Recovery.Reason
			}
			diff(t, test.want, got)
		})
	}
}

func TestPromotionThatCannotFailWaitsForHealth(t *testing.T) {
	deploying := func() *fixture.RolloutBuilder {
		return rollout().BakeTime(30 * time.Minute).DeployTimeout(10 * time.Minute).SelectAllChecks().History(entry("1.1.0").Deploying().Recovering())
	}
	baking := func() *fixture.RolloutBuilder {
		return rollout().BakeTime(30 * time.Minute).SelectAllChecks().History(entry("1.1.0").Baking(eleven).Recovering())
	}
	for name, test := range map[string]struct {
		given *situation
		want  promotion.Action
		again time.Time
	}{
		"its deadline passes without an end, and without a timer": {
			given(deploying()).targets(pending("apps")), promotion.Wait, time.Time{},
		},
		"an error keeps it from baking": {
			given(deploying()).targets(applied("apps")).resetChecks(check("db").Unhealthy().ErrorAt(noon)), promotion.Wait, time.Time{},
		},
		"it bakes when the check is Healthy again": {
			given(deploying()).targets(applied("apps")).resetChecks(check("db").Healthy().ErrorAt(noon)), promotion.StartBake, noon.Add(30 * time.Minute),
		},
		"an error keeps the bake open beyond its time": {
			given(baking()).targets(applied("apps")).resetChecks(check("db").Unhealthy().ErrorAt(noon)), promotion.Wait, noon.Add(time.Minute),
		},
		"an Unhealthy without an error, too": {
			given(baking()).targets(applied("apps")).resetChecks(check("db").Unhealthy()), promotion.Wait, noon.Add(time.Minute),
		},
		"it ends well when the check is Healthy again": {
			given(baking()).targets(applied("apps")).resetChecks(check("db").Healthy().ErrorAt(noon)), promotion.FinishBake, time.Time{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, test.want, d.Action)
			diff(t, test.again, d.RecheckAt)
		})
	}
}
