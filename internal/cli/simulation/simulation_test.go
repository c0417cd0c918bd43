// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/simulation"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const applies = 45 * time.Second

// shop returns the input of a decision while 1.0.0 runs, with one target and one check.
func shop(tb testing.TB, rollout *fixture.RolloutBuilder, latest string, changes ...func(*promotion.Input)) promotion.Input {
	tb.Helper()
	order, err := releases.NewOrder(releases.OrderSpec{Kind: releases.BySemver, Range: ">=0.0.0"})
	if err != nil {
		tb.Fatal(err)
	}
	named := fixture.MakeRelease(latest).Obj()
	in := promotion.Input{
		Now: fixture.Noon, Rollout: rollout.Ledger("1.0.0").History(fixture.MakeEntry("1.0.0").Succeeded()).Obj(),
		Policy:  releases.Policy{Name: "shop", Order: order, Latest: &named},
		Targets: content.Targets{All: []content.Target{{Kind: "OCIRepository", Namespace: "shop", Name: "shop", State: v1alpha1.TargetApplied}}},
		Health:  evidence.Health{Checks: []v1alpha1.HealthCheck{*fixture.MakeHealthCheck("smoke").Healthy().Obj()}},
	}
	for _, change := range changes {
		change(&in)
	}
	return in
}

func baked() *fixture.RolloutBuilder {
	return fixture.MakeRollout("shop").BakeTime(30 * time.Minute).SelectAllChecks()
}

func closed(in *promotion.Input) {
	in.Gates.Gates = []v1alpha1.RolloutGate{*fixture.MakeGate("qa", "shop").Closed().Obj()}
}

func opens(in *promotion.Input) { in.Gates.Gates = nil }

func fails(in *promotion.Input) {
	in.Health.Checks[0].Status.Status = v1alpha1.HealthStatusUnhealthy
	in.Health.Checks[0].Status.LastErrorTime = &metav1.Time{Time: in.Now}
}

func recovers(in *promotion.Input) {
	in.Health.Checks[0].Status = v1alpha1.HealthCheckStatus{Status: v1alpha1.HealthStatusHealthy}
}

func appears(tag string) func(*promotion.Input) {
	return func(in *promotion.Input) {
		release := fixture.MakeRelease(tag).Obj()
		in.Policy.Latest = &release
	}
}

// nightly is closed until an hour after noon.
func nightly(now time.Time) []promotion.Window {
	opening := fixture.Noon.Add(time.Hour)
	if !now.Before(opening) {
		return []promotion.Window{{Schedule: "RolloutSchedule nights", Open: true, Message: "open"}}
	}
	return []promotion.Window{{Schedule: "RolloutSchedule nights", Message: "closed", Until: opening}}
}

// at returns an event some time after noon.
func at(d time.Duration, change func(*promotion.Input)) simulation.Event {
	return simulation.Event{At: fixture.Noon.Add(d), Change: change}
}

// steps says when the engine did what, and what became of the current release.
func steps(result simulation.Result) (all []string) {
	for _, step := range result.Steps {
		all = append(all, fmt.Sprintf("%s %s %s %s",
			step.At.Sub(fixture.Noon).Truncate(time.Second), step.Decision.Action, step.Current.Version.Tag, step.Current.State()))
	}
	return all
}

func TestRun(t *testing.T) {
	for name, tt := range map[string]struct {
		in   promotion.Input
		with simulation.Assumptions
		want []string
		end  simulation.End
	}{
		"a release is promoted, applied, baked": {
			in:   shop(t, baked(), "1.1.0"),
			want: []string{"0s Promote 1.1.0 Deploying", "45s StartBake 1.1.0 InProgress", "30m45s FinishBake 1.1.0 Succeeded"},
			end:  simulation.AtRest,
		},
		"a gate opens": {
			in: shop(t, baked(), "1.1.0", closed), with: simulation.Assumptions{Events: []simulation.Event{at(time.Hour, opens)}},
			want: []string{"1h0m0s Promote 1.1.0 Deploying", "1h0m45s StartBake 1.1.0 InProgress", "1h30m45s FinishBake 1.1.0 Succeeded"},
			end:  simulation.AtRest,
		},
		"a gate stays closed": {in: shop(t, baked(), "1.1.0", closed), end: simulation.AtRest},
		"a schedule opens": {
			in: shop(t, fixture.MakeRollout("shop"), "1.1.0"), with: simulation.Assumptions{Schedules: nightly},
			want: []string{"1h0m0s Promote 1.1.0 Deploying", "1h0m45s FinishBake 1.1.0 Succeeded"}, end: simulation.AtRest,
		},
		"a schedule opens after the end": {
			in:   shop(t, fixture.MakeRollout("shop"), "1.1.0"),
			with: simulation.Assumptions{Schedules: nightly, Until: fixture.Noon.Add(time.Minute)}, end: simulation.OutOfTime,
		},
		"a check fails during the bake, and a newer release waits": {
			in: shop(t, baked(), "1.1.0"),
			with: simulation.Assumptions{Events: []simulation.Event{
				at(11*time.Minute, appears("1.2.0")), at(10*time.Minute, fails),
			}},
			want: []string{"0s Promote 1.1.0 Deploying", "45s StartBake 1.1.0 InProgress", "10m0s FailBake 1.1.0 Failed"},
			end:  simulation.AtRest,
		},
		"a release appears": {
			in:   shop(t, fixture.MakeRollout("shop"), "1.0.0"),
			with: simulation.Assumptions{Events: []simulation.Event{at(time.Hour, appears("1.1.0"))}},
			want: []string{"1h0m0s Promote 1.1.0 Deploying", "1h0m45s FinishBake 1.1.0 Succeeded"}, end: simulation.AtRest,
		},
		"the deadline passes before Flux applies it": {
			in:   shop(t, baked().DeployTimeout(time.Minute), "1.1.0"),
			with: simulation.Assumptions{Applies: time.Hour, Until: fixture.Noon.Add(2 * time.Hour)},
			want: []string{"0s Promote 1.1.0 Deploying", "1m0s FailBake 1.1.0 Failed"}, end: simulation.AtRest,
		},
		"what is deploying now is applied": {
			in: shop(t, baked(), "1.0.0", func(in *promotion.Input) {
				in.Rollout.Status.History[0] = fixture.MakeEntry("1.0.0").At(fixture.Noon).ID(1).Deploying().Obj()
				in.Targets.All[0].State = v1alpha1.TargetPending
			}),
			want: []string{"45s StartBake 1.0.0 InProgress", "30m45s FinishBake 1.0.0 Succeeded"}, end: simulation.AtRest,
		},
		"a writer needs time to report again": {
			in: shop(t, baked(), "1.1.0"), with: simulation.Assumptions{Reports: 5 * time.Minute},
			want: []string{"0s Promote 1.1.0 Deploying", "5m45s StartBake 1.1.0 InProgress", "35m45s FinishBake 1.1.0 Succeeded"},
			end:  simulation.AtRest,
		},
		"a check fails before its writer would report the same again": {
			in: shop(t, baked(), "1.1.0"), with: simulation.Assumptions{
				Reports: 5 * time.Minute, Events: []simulation.Event{at(2*time.Minute, fails)},
			},
			want: []string{"0s Promote 1.1.0 Deploying", "2m0s FailBake 1.1.0 Failed"}, end: simulation.AtRest,
		},
		"an unhealthy check reports an error again": {
			in:   shop(t, baked().Annotate(v1alpha1.UnblockFailedAnnotation, "true"), "1.1.0", fails),
			with: simulation.Assumptions{Reports: time.Minute},
			want: []string{"0s Promote 1.1.0 Deploying", "1m45s FailBake 1.1.0 Failed"}, end: simulation.AtRest,
		},
		"what is reported after the reset counts, not what was before it": {
			in:   shop(t, baked().Annotate(v1alpha1.UnblockFailedAnnotation, "true"), "1.1.0", fails),
			with: simulation.Assumptions{Reports: 5 * time.Minute, Events: []simulation.Event{at(2*time.Minute, recovers)}},
			want: []string{"0s Promote 1.1.0 Deploying", "2m0s StartBake 1.1.0 InProgress", "32m0s FinishBake 1.1.0 Succeeded"},
			end:  simulation.AtRest,
		},
		"a check that has reported nothing goes on like that": {
			in:   shop(t, baked(), "1.1.0", func(in *promotion.Input) { in.Health.Checks[0].Status = v1alpha1.HealthCheckStatus{} }),
			want: []string{"0s Promote 1.1.0 Deploying"}, end: simulation.AtRest,
		},
		"the controller was away until after the deadline": {
			in: shop(t, baked().DeployTimeout(time.Hour), "1.0.0", func(in *promotion.Input) {
				in.Rollout.Status.History[0] = fixture.MakeEntry("1.0.0").At(fixture.Noon.Add(-2 * time.Hour)).ID(1).Deploying().Obj()
			}),
			with: simulation.Assumptions{Reports: 20 * time.Minute},
			want: []string{"20m0s StartBake 1.0.0 InProgress", "50m0s FinishBake 1.0.0 Succeeded"}, end: simulation.AtRest,
		},
		"a release appears, and a check fails during its bake: nothing newer goes": {
			in: shop(t, fixture.MakeRollout("shop").BakeTime(4*time.Hour).SelectAllChecks(), "1.0.0"),
			with: simulation.Assumptions{Events: []simulation.Event{
				at(2*time.Hour, appears("1.6.0")), at(3*time.Hour, fails), at(4*time.Hour, appears("1.7.0")),
			}},
			want: []string{"2h0m0s Promote 1.6.0 Deploying", "2h0m45s StartBake 1.6.0 InProgress", "3h0m0s FailBake 1.6.0 Failed"},
			end:  simulation.AtRest,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.with.Until.IsZero() {
				tt.with.Until = fixture.Noon.Add(24 * time.Hour)
			}
			if tt.with.Applies == 0 {
				tt.with.Applies = applies
			}
			before := tt.in.Rollout.DeepCopy()
			result, err := simulation.Run(tt.in, tt.with)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, steps(result)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if result.End != tt.end {
				t.Errorf("it ended %s at %s, want %s", result.End, result.At, tt.end)
			}
			if diff := cmp.Diff(before, tt.in.Rollout); diff != "" {
				t.Errorf("the Rollout was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestFluxMayApplyAtOnce(t *testing.T) {
	result, err := simulation.Run(shop(t, baked(), "1.1.0"), simulation.Assumptions{Until: fixture.Noon.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"0s Promote 1.1.0 Deploying", "0s StartBake 1.1.0 InProgress", "30m0s FinishBake 1.1.0 Succeeded"}
	if diff := cmp.Diff(want, steps(result)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestLastDecisionSaysWhyNothingNewerGoes(t *testing.T) {
	in := shop(t, fixture.MakeRollout("shop").BakeTime(4*time.Hour).SelectAllChecks(), "1.0.0")
	result, err := simulation.Run(in, simulation.Assumptions{Applies: applies, Until: fixture.Noon.Add(24 * time.Hour), Events: []simulation.Event{
		at(2*time.Hour, appears("1.6.0")), at(3*time.Hour, fails), at(4*time.Hour, appears("1.7.0")),
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []promotion.Verdict{{Release: fixture.MakeRelease("1.7.0").Obj(), Holds: []verdict.Hold{
		{
			Reason:  v1alpha1.PreviousBakeFailedReason,
			Message: "the bake of 1.6.0 failed; to continue, pin a version, or annotate the Rollout with retry or unblock-failed",
		},
		{Reason: v1alpha1.UnhealthyHealthChecksReason, Message: "Unhealthy: HealthCheck shop-prod/smoke"},
	}}}
	if diff := cmp.Diff(want, result.Last.Candidates); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1.6.0 Failed", "1.0.0 Succeeded"}, history(result.Rollout)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

func history(rollout *v1alpha1.Rollout) (all []string) {
	for i := range rollout.Status.History {
		all = append(all, rollout.Status.History[i].Version.Tag+" "+string(rollout.Status.History[i].State()))
	}
	return all
}

// What other environments say does not change in a simulation. Time goes on.
func TestSoakEndsAtItsTime(t *testing.T) {
	said := environmentsv1.Release{Tag: "1.1.0", Digest: "sha256:11", State: v1alpha1.BakeSucceeded, Current: true, Soaked: &metav1.Duration{Duration: 30 * time.Minute}}
	soaks := func(in *promotion.Input) {
		in.Policy.Latest.Digest = &said.Digest
		in.Upstreams.Environments = []upstream.Environment{{Environment: &environmentsv1.Environment{}, Upstreams: []upstream.Upstream{{
			Upstream: environmentsv1.Upstream{Environment: "staging", SoakTime: &metav1.Duration{Duration: 2 * time.Hour}},
			Releases: []environmentsv1.Release{said}, Seen: fixture.Noon.Add(-time.Minute),
		}}}}
	}
	result, err := simulation.Run(shop(t, baked(), "1.1.0", soaks), simulation.Assumptions{Applies: applies, Until: fixture.Noon.Add(24 * time.Hour)})
	if err != nil || len(result.Steps) == 0 {
		t.Fatalf("it has %d steps, error %v", len(result.Steps), err)
	}
	if first := result.Steps[0]; first.Decision.Release.Tag != "1.1.0" || !first.At.Equal(fixture.Noon.Add(89*time.Minute)) {
		t.Errorf("%s goes at %s", first.Decision.Release.Tag, first.At)
	}
}
