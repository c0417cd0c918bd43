// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
)

func onlyApplied(r *environmentsv1.Release) { r.Evidence = environmentsv1.EvidenceApplied }

func TestPromotionSaysWhereNothingWasChecked(t *testing.T) {
	for name, test := range map[string]struct {
		upstreams []upstream.Upstream
		want      string
	}{
		"it was checked": {[]upstream.Upstream{after("staging", proven("1.4.0"))}, "the newest eligible release of ImagePolicy shop"},
		"it was not": {
			[]upstream.Upstream{after("staging", proven("1.4.0", onlyApplied)), after("qa", proven("1.4.0")), parallel("eu", proven("1.4.0", onlyApplied))},
			"the newest eligible release of ImagePolicy shop; no HealthCheck in staging",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(given(offered()).environments(prod(test.upstreams...)).in())
			diff(t, "Promote 1.4.0", settledBy(d).Does)
			diff(t, test.want, d.Message)
		})
	}
}

func TestEnvironmentIsShownAsAGateIs(t *testing.T) {
	newer := offered().Releases(known("1.3.0"), known("1.4.0"), known("1.5.0"))
	for name, test := range map[string]struct {
		given *situation
		want  v1alpha1.RolloutGateStatusSummary
	}{
		"nothing is proven": {given(newer).environments(prod(after("staging", proven("1.3.0")))), v1alpha1.RolloutGateStatusSummary{
			AllowedVersions: []string{}, Message: "lets 0 of 2 candidates through"}},
		"one of two": {given(newer).environments(prod(after("staging", proven("1.4.0")))), v1alpha1.RolloutGateStatusSummary{
			AllowedVersions: []string{"1.4.0"}, Message: "lets 1 of 2 candidates through"}},
		"a bypass": {
			given(newer.Annotate(v1alpha1.BypassGatesAnnotation, "1.5.0")).said("INC-1").environments(prod(after("staging", proven("1.4.0")))),
			v1alpha1.RolloutGateStatusSummary{AllowedVersions: []string{"1.4.0"}, Message: "lets 1 of 2 candidates through", BypassGates: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.given.names(release("1.5.0").Obj()).in()
			test.want.Name, test.want.Passing = "environment/prod", new(true)
			shown := promotion.Summaries(in, promotion.Decide(in).Candidates)
			diff(t, test.want, shown[len(shown)-1])
		})
	}
	foreign := prod()
	foreign.Spec.Backend.Type = environmentsv1.BackendGitHub
	diff(t, 0, len(promotion.Summaries(given(offered()).environments(foreign).in(), nil)))
}

func TestWhatHoldsAReleaseIsNamed(t *testing.T) {
	waiting, leaving := prod(after("staging")), prod(after("staging", proven("1.4.0"))).manual()
	leaving.Environment.Name = "approval"
	in := given(offered()).environments(waiting, leaving).in()
	diff(t, []string{"Environment prod"}, promotion.Blocking(in, environmentsv1.UpstreamPendingReason, known("1.4.0")))
	diff(t, []string{"Environment approval"}, promotion.Blocking(in, environmentsv1.AwaitingPromotionReason, known("1.4.0")))
	diff(t, 0, len(promotion.Blocking(in, environmentsv1.UpstreamFailedReason, known("1.4.0"))))
}
