// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"
	"time"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
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
			"the newest eligible release of ImagePolicy shop; no HealthCheck was asked in staging",
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

func TestWhatUpstreamsHaveAgainstWhatRuns(t *testing.T) {
	gone := func(r *environmentsv1.Release) { r.Withdrawn = "went back to 1.2.0" }
	runs := func() *situation { return given(offered().History(entry("1.3.0").Version(known("1.3.0")).Succeeded())) }
	for name, test := range map[string]struct {
		given *situation
		want  string
	}{
		"nothing":                     {runs().environments(prod(after("staging", proven("1.3.0")))), ""},
		"it never was there":          {runs().environments(prod(after("staging", proven("1.2.0")))), ""},
		"it was withdrawn":            {runs().environments(prod(after("staging", proven("1.2.0"), proven("1.3.0", gone)))), "1.3.0 counts no longer in staging, which went back to 1.2.0"},
		"in a parallel one, too":      {runs().environments(prod(parallel("eu", proven("1.2.0"), proven("1.3.0", gone)))), "1.3.0 counts no longer in eu, which went back to 1.2.0"},
		"it failed there since":       {runs().environments(prod(after("staging", there("1.3.0", v1alpha1.BakeFailed)))), "1.3.0 failed in staging"},
		"another image by that tag":   {runs().environments(prod(after("staging", there("1.3.0", v1alpha1.BakeFailed, withDigest("sha256:other"))))), ""},
		"nothing runs here":           {given(rollout()).environments(prod(after("staging", proven("1.3.0", gone)))), ""},
		"the upstream cannot be read": {runs().environments(prod(unknownUpstream("staging", "it is away"))), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if hold := withdrawn(test.given.in()); hold != nil {
				got = hold.Message
			}
			diff(t, test.want, got)
		})
	}
}

func TestSinceWhenAReleaseIsProven(t *testing.T) {
	at := func(minute int) func(*environmentsv1.Release) {
		return from(noon.Add(time.Duration(minute) * time.Minute))
	}
	for name, test := range map[string]struct {
		upstreams []upstream.Upstream
		want      time.Time
	}{
		"no upstream":         {nil, time.Time{}},
		"the last one counts": {[]upstream.Upstream{after("a", proven("1.4.0", at(1))), after("b", proven("1.4.0", at(5))), parallel("c", proven("1.4.0", at(9)))}, noon.Add(5 * time.Minute)},
		"not in each":         {[]upstream.Upstream{after("a", proven("1.4.0", at(1))), after("b", there("1.4.0", v1alpha1.BakeInProgress, at(5)))}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, test.want, given(offered()).environments(prod(test.upstreams...)).in().Upstreams.ProvenSince(known("1.4.0")))
		})
	}
}

func withdrawn(in promotion.Input) *verdict.Hold { return in.Upstreams.Withdrawn(in.Rollout.Current()) }
