// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/simulation"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const applies = 45 * time.Second

// shop returns the input of a decision while 1.0.0 runs, with one target and one check.
func shop(t *testing.T, rollout *fixture.RolloutBuilder, latest string, changes ...func(*promotion.Input)) promotion.Input {
	t.Helper()
	order, err := promotion.NewOrder(promotion.OrderSpec{Kind: promotion.BySemver, Range: ">=0.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	named := fixture.MakeRelease(latest).Obj()
	in := promotion.Input{
		Now: fixture.Noon, Rollout: rollout.Ledger("1.0.0").History(fixture.MakeEntry("1.0.0").Succeeded()).Obj(),
		Policy:  promotion.Policy{Name: "shop", Order: order, Latest: &named},
		Targets: promotion.Targets{All: []promotion.Target{{Kind: "OCIRepository", Namespace: "shop", Name: "shop", State: v1alpha1.TargetApplied}}},
		Health:  promotion.Health{Checks: []v1alpha1.HealthCheck{*fixture.MakeHealthCheck("smoke").Healthy().Obj()}},
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

func TestRun(t *testing.T) {
	at := func(d time.Duration, change func(*promotion.Input)) simulation.Event {
		return simulation.Event{At: fixture.Noon.Add(d), Change: change}
	}
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
			var got []string
			for _, step := range result.Steps {
				got = append(got, fmt.Sprintf("%s %s %s %s", step.At.Sub(fixture.Noon).Truncate(time.Second), step.Decision.Action, step.Current.Version.Tag, step.Current.State()))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
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
