// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func rate(name string) *fixture.HealthCheckBuilder {
	return check(name).Prometheus("rate", "value < 1")
}

func TestChecksThatAskTheApplicationAreResetOnceItIsRolledOut(t *testing.T) {
	for name, test := range map[string]struct {
		given *situation
		want  []int
	}{
		"the others come first": {
			given(deploying()).checks(check("apps").Kustomization(), rate("errors"), check("status").Object("v1", "Pod", "a"), check("web").HTTP("http://web"), check("ci")),
			[]int{0, 2, 4},
		},
		"then these, as soon as all are proven": {
			given(deploying()).resetChecks(check("apps").Kustomization().Healthy(), check("status").Object("v1", "Pod", "a").Healthy()).
				checks(rate("errors"), check("web").HTTP("http://web")),
			[]int{2, 3},
		},
		"and not while one is Pending": {
			given(deploying()).resetChecks(check("apps").Kustomization().Healthy(), check("status").Object("v1", "Pod", "a").Pending()).checks(rate("errors")),
			[]int{},
		},
		"they do not wait for those of other writers": {
			given(deploying()).resetChecks(check("ci").Pending()).checks(rate("errors")), []int{1},
		},
		"without such checks they are reset at once": {
			given(deploying()).checks(rate("errors")), []int{0},
		},
		"a check whose block is missing is another writer's": {
			given(deploying()).resetChecks(check("apps").Kustomization().Pending()).checks(check("errors").Class("prometheus")), []int{1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, test.want, promotion.Decide(test.given.targets(applied("apps")).in()).Resets)
		})
	}
}

func TestCheckThatCannotBeMeasuredHoldsPromotions(t *testing.T) {
	const problem = "spec.prometheus.condition: undeclared reference to 'valu'"
	hold := []verdict.Hold{{
		Reason: v1alpha1.HealthCheckInvalidReason, Message: "HealthCheck shop-prod/errors cannot be measured: " + problem,
	}}
	for name, test := range map[string]struct {
		check *fixture.HealthCheckBuilder
		want  []verdict.Hold
	}{
		"always":                     {rate("errors").Healthy().Problem(problem), hold},
		"not if it is not enforced":  {rate("errors").Healthy().Problem(problem).Enforced(false), nil},
		"not if it can":              {rate("errors").Healthy(), nil},
		"not if another measures it": {check("errors").Class("prometheus").Healthy().Problem(problem), nil},
	} {
		t.Run(name, func(t *testing.T) {
			candidates := promotion.Decide(given(upgrade()).checks(test.check).in()).Candidates
			diff(t, test.want, candidates[0].Holds)
		})
	}
	slow := promotion.Decide(given(upgrade().DeployTimeout(time.Minute)).checks(rate("errors").Healthy()).in()).Candidates
	diff(t, []verdict.Hold{{
		Reason: v1alpha1.HealthCheckInvalidReason,
		Message: "HealthCheck shop-prod/errors cannot prove a release in time: it is Healthy 1m after a release was applied at the earliest, " +
			"and deployTimeout is 1m: use a longer deployTimeout, or a shorter delay or interval",
	}}, slow[0].Holds)
	pinned := promotion.Decide(given(upgrade().Pin("1.1.0")).checks(rate("errors").Healthy().Problem(problem)).in())
	diff(t, promotion.Promote, pinned.Action)
}

func TestOutcomeSaysWhatWasMeasured(t *testing.T) {
	d := promotion.Decide(given(deploying()).targets(applied("apps")).resetChecks(
		rate("errors").Healthy().Measured(eleven, "0.5", v1alpha1.MeasurementGood).Measured(noon, "0.002", v1alpha1.MeasurementGood), check("ci").Healthy(),
	).in())
	diff(t, "applied and healthy (2 HealthChecks: errors 0.002)", d.Message)
}
