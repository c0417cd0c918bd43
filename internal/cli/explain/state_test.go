// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestStateIsWhatMattersMost(t *testing.T) {
	const failure = "not applied and healthy within 15m0s: Kustomization shop/shop: dry-run failed"
	done, failed := fixture.MakeEntry("1.0.0").Succeeded(), fixture.MakeEntry("1.1.0").Failed().Because(failure)
	deploying, baking := fixture.MakeEntry("1.1.0").Deploying().Because("waiting for Flux to apply 1.1.0"), fixture.MakeEntry("1.1.0").Baking(fixture.Noon).Because("baking")
	type change func(*v1alpha1.Rollout)
	is := func(kind string, status metav1.ConditionStatus, reason, message string) change {
		return func(r *v1alpha1.Rollout) {
			r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
		}
	}
	ready := is(v1alpha1.ReadyCondition, metav1.ConditionTrue, "", "")
	notReady := is(v1alpha1.ReadyCondition, metav1.ConditionFalse, "", "ImagePolicy shop names no release yet")
	held := func(messages ...string) change {
		return func(r *v1alpha1.Rollout) {
			c := v1alpha1.ReleaseCandidate{VersionInfo: v1alpha1.VersionInfo{Tag: "1.2.0"}}
			for _, message := range messages {
				c.Holds = append(c.Holds, v1alpha1.CandidateHold{Message: message})
			}
			r.Status.ReleaseCandidates = []v1alpha1.ReleaseCandidate{c}
		}
	}
	target := func(state v1alpha1.TargetState, message string) change {
		return func(r *v1alpha1.Rollout) {
			r.Status.Targets = append(r.Status.Targets, v1alpha1.TargetStatus{Kind: "OCIRepository", Name: "shop", State: state, Message: message})
		}
	}
	blind := is(v1alpha1.ReleasesUpdatedCondition, metav1.ConditionFalse, "", "ImageRepository shop is suspended")
	all := func(changes ...change) []change { return changes }
	for name, tt := range map[string]struct {
		history []*fixture.EntryBuilder
		pin     string
		changes []change
		want    explain.State
	}{
		"suspended, whatever else is so": {
			[]*fixture.EntryBuilder{failed}, "", all(func(r *v1alpha1.Rollout) { r.Spec.Suspend = true }), explain.State{Kind: explain.StateSuspended, Cause: "resume"},
		},
		"stalled": {
			[]*fixture.EntryBuilder{failed}, "", all(is(v1alpha1.StalledCondition, metav1.ConditionTrue, v1alpha1.InvalidWantedVersionReason, "spec.wantedVersion is no tag")),
			explain.State{Kind: explain.StateStalled, Cause: "spec.wantedVersion is no tag"},
		},
		"failed, with the cause and not the way out": {
			[]*fixture.EntryBuilder{failed}, "", all(is(v1alpha1.StalledCondition, metav1.ConditionTrue, v1alpha1.BakeTimeFailedReason, "annotate with retry"), held("the bake of 1.1.0 failed")),
			explain.State{Kind: explain.StateFailed, Cause: failure},
		},
		"failed, and it goes back": {
			[]*fixture.EntryBuilder{failed}, "", all(is(v1alpha1.RolledBackCondition, metav1.ConditionFalse, v1alpha1.RollbackDelayedReason, "goes back to 1.0.0 at 12:10")),
			explain.State{Kind: explain.StateFailed, Cause: failure + "; goes back to 1.0.0 at 12:10"},
		},
		"deploying": {[]*fixture.EntryBuilder{deploying}, "", all(ready), explain.State{Kind: explain.StateDeploying, Cause: "waiting for Flux to apply 1.1.0"}},
		"deploying, and a target cannot": {
			[]*fixture.EntryBuilder{deploying}, "", all(ready, target(v1alpha1.TargetFailed, "NAME_UNKNOWN"), target(v1alpha1.TargetPending, ""), held("1.1.0 is still Deploying")),
			explain.State{Kind: explain.StateDeploying, Cause: "OCIRepository shop: NAME_UNKNOWN"},
		},
		"baking": {[]*fixture.EntryBuilder{baking}, "", all(ready, held("1.1.0 is still InProgress")), explain.State{Kind: explain.StateBaking, Cause: "baking"}},
		"baking, and it is late": {
			[]*fixture.EntryBuilder{baking}, "", all(is(v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.BakeOverdueReason, "it was to be over at 11:00")),
			explain.State{Kind: explain.StateBaking, Cause: "it was to be over at 11:00"},
		},
		"a target came later":   {[]*fixture.EntryBuilder{done}, "", all(notReady, target(v1alpha1.TargetPending, "dependency not found")), explain.State{Kind: explain.StateDeploying, Cause: "OCIRepository shop: dependency not found"}},
		"nothing is deployed":   {nil, "", all(notReady), explain.State{Kind: explain.StateWaiting, Cause: "ImagePolicy shop names no release yet"}},
		"nobody looked at it":   {nil, "", nil, explain.State{Kind: explain.StateWaiting, Cause: "the controller has not looked at it yet"}},
		"held":                  {[]*fixture.EntryBuilder{done}, "", all(ready, held("not passing: RolloutGate qa")), explain.State{Kind: explain.StateHeld, Cause: "not passing: RolloutGate qa"}},
		"held by several":       {[]*fixture.EntryBuilder{done}, "", all(ready, held("not passing: RolloutGate qa", "closed", "pinned")), explain.State{Kind: explain.StateHeld, Cause: "not passing: RolloutGate qa (and 2 more)"}},
		"goes":                  {[]*fixture.EntryBuilder{done}, "", all(ready, held()), explain.State{Kind: explain.StateGoes, Cause: "nothing holds 1.2.0"}},
		"newer ones are unseen": {[]*fixture.EntryBuilder{done}, "", all(ready, blind), explain.State{Kind: explain.StateUnseen, Cause: "ImageRepository shop is suspended"}},
		"up to date":            {[]*fixture.EntryBuilder{done}, "", all(ready), explain.State{Kind: explain.StateUpToDate, Cause: "up to date"}},
		"up to date and pinned": {[]*fixture.EntryBuilder{done}, "1.0.0", all(ready), explain.State{Kind: explain.StateUpToDate, Cause: "up to date; 1.0.0 is pinned"}},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fixture.MakeRollout("shop").History(tt.history...)
			if tt.pin != "" {
				builder.Pin(tt.pin)
			}
			rollout := builder.Obj()
			for _, change := range tt.changes {
				change(rollout)
			}
			if diff := cmp.Diff(tt.want, explain.StateOf(rollout)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What is decided now is shown although no status has it yet.
func TestStateNowNeedsNoStatus(t *testing.T) {
	in := waits(t, fixture.MakeRollout("shop"), gates(fixture.MakeGate("qa", "shop").Closed()))
	want := explain.State{Kind: explain.StateHeld, Cause: "not passing: RolloutGate qa"}
	if diff := cmp.Diff(want, explain.StateNow(in, promotion.Decide(in))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	in = waits(t, fixture.MakeRollout("shop"))
	want = explain.State{Kind: explain.StateGoes, Cause: "nothing holds 1.1.0"}
	if diff := cmp.Diff(want, explain.StateNow(in, promotion.Decide(in))); diff != "" {
		t.Errorf("before it is promoted (-want +got):\n%s", diff)
	}
}

func TestFailureAndSuspensionHaveRemediesOfTheirOwn(t *testing.T) {
	good, failed := fixture.MakeEntry("0.9.0").ID(1).Succeeded(), fixture.MakeEntry("1.0.0").ID(2).Failed()
	for name, tt := range map[string]struct {
		rollout *fixture.RolloutBuilder
		suspend bool
		want    []string
	}{
		"a failure, and a release before it": {
			fixture.MakeRollout("shop").History(failed, good), false, []string{"retry", "rollback --to 0.9.0 -m ", "unblock: for the candidate"},
		},
		"a failure of the first release": {fixture.MakeRollout("shop").History(failed), false, []string{"retry", "unblock: for the candidate"}},
		"a suspension":                   {fixture.MakeRollout("shop"), true, []string{"resume"}},
		"nothing to help":                {fixture.MakeRollout("shop"), false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := waits(t, tt.rollout)
			in.Rollout.Spec.Suspend = tt.suspend
			x := explain.Explain(in, promotion.Decide(in), 1, explain.User{})
			var got []string
			for _, r := range x.Remedies {
				got = append(got, joined(r))
			}
			for _, r := range x.Candidates[0].Remedies {
				got = append(got, joined(r)+": for the candidate")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func joined(c explain.Command) string { return strings.Join(append([]string{c.Verb}, c.Args...), " ") }
