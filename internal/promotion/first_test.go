// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestFirstRelease(t *testing.T) {
	first := func(tag string) outcome {
		return outcome{
			Action: promotion.Promote, Release: tag, Reason: v1alpha1.EligibleReason,
			Message: "the first release of this environment, from ImagePolicy shop",
		}
	}
	nothing := outcome{Action: promotion.Nothing}
	fresh := func() *fixture.RolloutBuilder { return rollout().Ledger("1.0.0", "1.1.0", "1.2.0") }
	for name, test := range map[string]struct {
		given *situation
		want  outcome
	}{
		"is the newest":                           {given(fresh()), first("1.2.0")},
		"is found in the very pass that sees it":  {given(rollout()).latest("1.0.0"), first("1.0.0")},
		"goes past a closed gate":                 {given(fresh()).gates(gate("manual").Closed()), first("1.2.0")},
		"goes past a schedule":                    {given(fresh()).schedules(closedUntil(never, "nights")), first("1.2.0")},
		"goes past Unhealthy checks":              {given(fresh()).checks(check("db").Unhealthy()), first("1.2.0")},
		"goes out although checks cannot be read": {given(fresh()).healthUnreadable(), first("1.2.0")},
		"is the newest that the gates allow":      {given(fresh()).gates(gate("qa").Allow("1.0.0", "1.1.0")), first("1.1.0")},
		"is the newest that all gates allow": {
			given(fresh()).gates(gate("a").Allow("1.0.0", "1.1.0"), gate("b").Allow("1.0.0", "1.2.0")), first("1.0.0"),
		},
		"is the newest of all if a gate names none":             {given(fresh()).gates(gate("qa").Allow()), first("1.2.0")},
		"does not heed what a closed gate allows":               {given(fresh()).gates(gate("qa").Closed().Allow("1.0.0")), first("1.2.0")},
		"is not one that was withdrawn":                         {given(fresh()).latest("1.1.0"), first("1.1.0")},
		"waits if a gate names only others":                     {given(fresh()).gates(gate("qa").Allow("0.9.0")), nothing},
		"waits if no release is named by all gates":             {given(fresh()).gates(gate("a").Allow("1.0.0"), gate("b").Allow("1.1.0")), nothing},
		"is not one that was withdrawn, though a gate names it": {given(fresh()).latest("1.1.0").gates(gate("qa").Allow("1.2.0")), nothing},
		"goes past what gates name if a user bypasses them": {
			given(fresh().Annotate(v1alpha1.BypassGatesAnnotation, "1.1.0")).gates(gate("qa").Allow("0.9.0")),
			outcome{
				Action: promotion.Promote, Release: "1.1.0", Reason: v1alpha1.EligibleReason,
				Message: "the first release of this environment, from ImagePolicy shop; gates bypassed manually",
			},
		},
		"waits until the policy names one":                           {given(rollout()), nothing},
		"waits while the policy names none any more":                 {given(fresh()).namesNothing(), nothing},
		"waits while the policy cannot be used":                      {given(fresh()).policyUnreadable(), nothing},
		"waits while gates cannot be read":                           {given(fresh()).gatesUnreadable(), nothing},
		"waits while targets cannot be read, for they may carry one": {given(fresh()).targetsUnreadable(), nothing},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, test.want, outcomeOf(d))
			if d.Problem != nil {
				t.Errorf("unexpected problem: %v", d.Problem)
			}
		})
	}
}

func TestLostHistoryIsAdopted(t *testing.T) {
	lost := func() *fixture.RolloutBuilder { return rollout().Ledger("1.0.0", "1.1.0") }
	adopted := func(tag string) outcome {
		return outcome{
			Action: promotion.Adopt, Release: tag, Reason: v1alpha1.ReleaseAdoptedReason,
			Message: "the history was lost; the targets carry this version",
		}
	}
	nothing := outcome{Action: promotion.Nothing}
	for name, test := range map[string]struct {
		given   *situation
		want    outcome
		problem *verdict.Problem
	}{
		"what the targets carry is taken over":        {given(lost()).owned("1.0.0"), adopted("1.0.0"), nil},
		"even if the ledger does not know it":         {given(lost()).owned("0.9.0"), adopted("0.9.0"), nil},
		"targets that agree are one version":          {given(lost()).owned("1.0.0", "1.0.0", "1.0.0"), adopted("1.0.0"), nil},
		"a policy that names nothing does not matter": {given(rollout()).owned("1.0.0"), adopted("1.0.0"), nil},
		"targets that disagree are named, and nothing is written": {
			given(lost()).owned("1.1.0", "1.0.0", "1.1.0"), nothing,
			&verdict.Problem{
				Reason: v1alpha1.TargetsDisagreeReason,
				Message: "the history is lost and the targets carry different versions (1.0.0, 1.1.0): " +
					"set spec.wantedVersion to the right one",
			},
		},
		"a pin decides between targets that disagree": {
			given(lost().Pin("1.0.0")).owned("1.1.0", "1.0.0"),
			outcome{
				Action: promotion.Promote, Release: "1.0.0", Manual: true,
				Reason: v1alpha1.PinnedReason, Message: "pinned manually in spec.wantedVersion",
			},
			nil,
		},
		"nothing is adopted while targets cannot be read": {given(lost()).owned("1.0.0").targetsUnreadable(), nothing, nil},
		"nothing is adopted while gates cannot be read":   {given(lost()).owned("1.0.0").gatesUnreadable(), nothing, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, test.want, outcomeOf(d))
			diff(t, test.problem, d.Problem)
		})
	}
}

func TestGatesApplyAfterAdoption(t *testing.T) {
	in := given(rollout().Ledger("1.0.0", "1.1.0")).owned("1.0.0").gates(gate("manual").Closed()).targets(applied("apps")).in()
	for _, want := range []promotion.Action{promotion.Adopt, promotion.FinishBake, promotion.Nothing} {
		d := promotion.Decide(in)
		diff(t, want, d.Action)
		history, err := promotion.Record(in, d)
		if err != nil {
			t.Fatal(err)
		}
		in.Rollout.Status.History, in.Targets.Owned = history, nil
	}
	diff(t, "1.0.0", in.Rollout.Current().Version.Tag)
}
