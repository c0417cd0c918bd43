// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"fmt"
	"testing"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestHoldsThatOnlyThisControllerKnowsAreMirrored(t *testing.T) {
	heldBy := func(tag string, reasons ...string) promotion.Verdict {
		v := promotion.Verdict{Release: v1alpha1.VersionInfo{Tag: tag}}
		for _, reason := range reasons {
			v.Holds = append(v.Holds, verdict.Hold{Reason: reason})
		}
		return v
	}
	for name, tt := range map[string]struct {
		candidates []promotion.Verdict
		want       []string
	}{
		"none":              {nil, nil},
		"nothing holds":     {[]promotion.Verdict{heldBy("1.1.0")}, nil},
		"others know these": {[]promotion.Verdict{heldBy("1.1.0", v1alpha1.SomeGatesBlockingReason, v1alpha1.ScheduleClosedReason, v1alpha1.BakeRunningReason)}, nil},
		"an environment":    {[]promotion.Verdict{heldBy("1.1.0", environmentsv1.UpstreamPendingReason)}, []string{}},
		"a quarantine": {
			[]promotion.Verdict{heldBy("1.2.0", v1alpha1.QuarantinedReason), heldBy("1.1.0", v1alpha1.SomeGatesBlockingReason)}, []string{"1.1.0"},
		},
		"a failure":       {[]promotion.Verdict{heldBy("1.2.0"), heldBy("1.1.0", v1alpha1.FailedBeforeReason)}, []string{"1.2.0"}},
		"users' decision": {[]promotion.Verdict{heldBy("1.2.0", environmentsv1.AwaitingPromotionReason)}, []string{}},
	} {
		t.Run(name, func(t *testing.T) { diff(t, tt.want, promotion.Mirrored(given(rollout()).in(), tt.candidates)) })
	}

	// Others see the gates of the namespace themselves.
	for name, tt := range map[string]struct {
		in   promotion.Input
		want []string
	}{
		"approvals, for the namespace":       {askingTwo().in(), nil},
		"approvals, for the cluster":         {askingTwo().clusterGates(fixture.MakeClusterGate("prod").Asking(fixture.AskFor(1))).in(), []string{}},
		"a gate of the cluster":              {askingTwo().clusterGates(fixture.MakeClusterGate("prod").Closed()).in(), []string{}},
		"a gate of the cluster that is open": {askingTwo().clusterGates(fixture.MakeClusterGate("prod")).in(), nil},
	} {
		t.Run(name, func(t *testing.T) { diff(t, tt.want, promotion.Mirrored(tt.in, promotion.Decide(tt.in).Candidates)) })
	}

	many := []promotion.Verdict{heldBy("9.9.9", v1alpha1.FailedBeforeReason)}
	for i := range 500 {
		many = append(many, heldBy(fmt.Sprintf("1.0.%d", 500-i)))
	}
	free := promotion.Mirrored(given(rollout()).in(), many)
	diff(t, 100, len(free))
	diff(t, "1.0.500", free[0])
}

// What looks held to a dashboard is in the list of gates, and holds nothing by itself.
func TestMirrorIsShownLikeAGate(t *testing.T) {
	in := given(offered()).environments(prod(after("staging", proven("1.3.0")))).in()
	d := promotion.Decide(in)
	names := func() (all []string) {
		for _, summary := range promotion.Summaries(in, d.Candidates) {
			all = append(all, fmt.Sprintf("%s %v %q", summary.Name, *summary.Passing, summary.AllowedVersions))
		}
		return all
	}
	diff(t, []string{`shop-holds true []`, `environment/prod true []`}, names())
	in = given(offered()).in()
	d = promotion.Decide(in)
	diff(t, []string(nil), names())
}
