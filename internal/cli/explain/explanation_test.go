// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestExplanationHasWhatTheEngineDecides(t *testing.T) {
	in := waits(t, fixture.MakeRollout("shop"), gates(fixture.MakeGate("qa", "shop").Closed()), closedSchedule)
	d := promotion.Decide(in)
	got := explain.Explain(in, d, 1, explain.User{})
	until := metav1.NewTime(fixture.Noon.Add(time.Hour))
	want := explain.Explanation{
		Namespace: in.Rollout.Namespace, Name: "shop", State: explain.State{Kind: explain.StateHeld, Cause: "not passing: RolloutGate qa (and 1 more)"},
		At: metav1.NewTime(fixture.Noon), Current: in.Rollout.Current(),
		Now: explain.Step{Action: "Nothing"}, Changes: &until,
		Candidates: []explain.Candidate{{
			Version: "1.1.0",
			Holds: []explain.Hold{
				{Reason: "SomeGatesBlocking", Message: "not passing: RolloutGate qa"},
				{Reason: "ScheduleClosed", Message: d.Candidates[0].Holds[1].Message, Until: &until},
			},
			Remedies: []explain.Command{
				{Verb: "approve", Args: []string{"--gate", "qa", "--version", "1.1.0"}, Left: []string{"ScheduleClosed"}},
				{Verb: "promote", Args: []string{"--version", "1.1.0", "--past-gates"}, Promotes: true},
			},
		}},
		Differences: []explain.Difference{{Version: "1.1.0", Decision: []string{"SomeGatesBlocking", "ScheduleClosed"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(explain.Explain(in, d, 0, explain.User{}).Candidates[0].Remedies) > 0 {
		t.Error("there are remedies although none were asked for")
	}
}

func TestStatusThatSaysSomethingElseIsADifference(t *testing.T) {
	gated := func(status ...v1alpha1.ReleaseCandidate) promotion.Input {
		in := waits(t, fixture.MakeRollout("shop"), gates(fixture.MakeGate("qa", "shop").Closed()))
		in.Rollout.Status.ReleaseCandidates = status
		return in
	}
	candidate := func(reasons ...string) v1alpha1.ReleaseCandidate {
		c := v1alpha1.ReleaseCandidate{VersionInfo: v1alpha1.VersionInfo{Tag: "1.1.0"}}
		for _, reason := range reasons {
			c.Holds = append(c.Holds, v1alpha1.CandidateHold{Reason: reason})
		}
		return c
	}
	now := []string{"SomeGatesBlocking"}
	behind := gated(candidate())
	behind.Rollout.Generation = behind.Rollout.Status.ObservedGeneration + 1
	short := gated(candidate())
	short.Rollout.Status.Unlisted = &v1alpha1.UnlistedCounts{}
	for name, tt := range map[string]struct {
		in   promotion.Input
		want []explain.Difference
	}{
		"the same":                    {gated(candidate("SomeGatesBlocking")), nil},
		"another hold":                {gated(candidate("ScheduleClosed")), []explain.Difference{{Version: "1.1.0", Known: true, Status: []string{"ScheduleClosed"}, Decision: now}}},
		"no hold":                     {gated(candidate()), []explain.Difference{{Version: "1.1.0", Known: true, Decision: now}}},
		"no candidate":                {gated(), []explain.Difference{{Version: "1.1.0", Decision: now}}},
		"a status of an older spec":   {behind, nil},
		"a status that left some out": {short, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := explain.Explain(tt.in, promotion.Decide(tt.in), 0, explain.User{}).Differences
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestProblemsOfTheWholeRolloutComeFirst(t *testing.T) {
	in := waits(t, fixture.MakeRollout("shop"))
	in.Rollout.Spec.Suspend, in.Rollout.Generation = true, in.Rollout.Status.ObservedGeneration+1
	problem := &verdict.Problem{Reason: v1alpha1.GateListFailedReason, Message: "gates or schedules could not be read"}
	in.Gates.Problem, in.Health.Problem = problem, problem
	var got []string
	for _, p := range explain.Explain(in, promotion.Decide(in), 0, explain.User{}).Problems {
		got = append(got, p.Reason)
	}
	if diff := cmp.Diff([]string{"Suspended", "GateListFailed"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHoldsSayWhatTheirAuthorsSay(t *testing.T) {
	in := waits(t, fixture.MakeRollout("shop"), frozen(t), gates(fixture.MakeGate("mute", "shop").Closed()), frozenSchedule)
	in.Health.Checks = []v1alpha1.HealthCheck{*fixture.MakeHealthCheck("web").Unhealthy().Message("answers with 502").Obj()}
	got := map[string][]string{}
	for _, hold := range explain.Explain(in, promotion.Decide(in), 0, explain.User{}).Candidates[0].Holds {
		got[hold.Reason] = hold.Details
	}
	want := map[string][]string{
		"UnhealthyHealthChecks": {"HealthCheck shop-prod/web: answers with 502"},
		"SomeGatesBlocking":     {"RolloutGate freeze-shop: Freeze: INC-7"},
		"ScheduleClosed":        {"RolloutSchedule night: Freeze: INC-7"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Flux cannot pull it, and that is in no reason of a target.
func TestTargetThatHasNotAppliedTheReleaseIsAProblem(t *testing.T) {
	in := waits(t, fixture.MakeRollout("shop").History(fixture.MakeEntry("1.0.0").Deploying()))
	in.Targets.All = []content.Target{
		{Kind: "OCIRepository", Namespace: "default", Name: "shop", State: v1alpha1.TargetFailed, Message: "NAME_UNKNOWN"},
		{Kind: "Kustomization", Namespace: "default", Name: "shop", State: v1alpha1.TargetPending},
	}
	want := []explain.Problem{{Reason: "TargetFailed", Message: "OCIRepository default/shop: NAME_UNKNOWN"}}
	if diff := cmp.Diff(want, explain.Explain(in, promotion.Decide(in), 0, explain.User{}).Problems); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTargetThatFailedTheReleaseIsNotNamedTwice(t *testing.T) {
	in := waits(t, fixture.MakeRollout("shop").History(fixture.MakeEntry("1.0.0").Failed().Cause(v1alpha1.CauseDeployTimeout).Because("not applied within 15m0s: OCIRepository shop: NAME_UNKNOWN")))
	in.Targets.All = []content.Target{{Kind: "OCIRepository", Name: "shop", State: v1alpha1.TargetFailed, Message: "NAME_UNKNOWN"}}
	if got := explain.Explain(in, promotion.Decide(in), 0, explain.User{}).Problems; len(got) > 0 {
		t.Errorf("%q", got)
	}
}
