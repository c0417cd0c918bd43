// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestGoals(t *testing.T) {
	type answer struct {
		Progress progress
		Text     string
	}
	candidate := func(tag string, holds ...v1alpha1.CandidateHold) *v1alpha1.Rollout {
		r := fixture.MakeRollout("shop").Observed(1).Ledger("0.9.0", "1.0.0").History(fixture.MakeEntry("1.0.0").ID(1).Succeeded()).Obj()
		r.Status.ReleaseCandidates = []v1alpha1.ReleaseCandidate{{VersionInfo: v1alpha1.VersionInfo{Tag: tag}, Holds: holds}}
		return r
	}
	history := func(entries ...*fixture.EntryBuilder) *v1alpha1.Rollout {
		return fixture.MakeRollout("shop").Observed(1).History(entries...).Obj()
	}
	entry := func() *fixture.EntryBuilder { return fixture.MakeEntry("1.1.0").ID(2) }
	const runs = "1.2.0 runs (#3), and 1.1.0 is not newer: it goes out only if it is pinned"
	later := func() *fixture.EntryBuilder { return fixture.MakeEntry("1.2.0").ID(3).Failed() }
	rollout := func() *fixture.RolloutBuilder {
		return fixture.MakeRollout("shop").Observed(1).Ledger("1.1.0", "1.2.0").History(later(), entry().Succeeded())
	}
	changed := func(of *v1alpha1.Rollout, change func(*v1alpha1.Rollout)) *v1alpha1.Rollout {
		change(of)
		return of
	}
	hindered := func(r *v1alpha1.Rollout) *v1alpha1.Rollout {
		r.Status.Targets = []v1alpha1.TargetStatus{{Kind: "Kustomization", Name: "web", State: v1alpha1.TargetFailed, Message: "the dry-run failed"}}
		return r
	}
	condition := func(r *v1alpha1.Rollout, kind string, status metav1.ConditionStatus, message string) *v1alpha1.Rollout {
		r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: kind, Status: status, Message: message})
		return r
	}
	stalled := func(r *v1alpha1.Rollout) *v1alpha1.Rollout {
		return condition(r, v1alpha1.StalledCondition, metav1.ConditionTrue, "ImagePolicy shop does not exist")
	}
	notReady := func(r *v1alpha1.Rollout) *v1alpha1.Rollout {
		return condition(r, v1alpha1.ReadyCondition, metav1.ConditionFalse, "the registry does not answer")
	}
	failedBefore := func() *v1alpha1.Rollout {
		r := rollout().Obj()
		r.Status.History[0].BakeStatusMessage = new("two pods crash")
		r.Status.ReleaseCandidates = []v1alpha1.ReleaseCandidate{{VersionInfo: v1alpha1.VersionInfo{Tag: "1.3.0"}, Holds: []v1alpha1.CandidateHold{{Message: "1.2.0 failed"}}}}
		return r
	}
	suspend := func(r *v1alpha1.Rollout) { r.Spec.Suspend, r.Generation = true, 2 }
	behind := func(r *v1alpha1.Rollout) { r.Generation = 2 }
	for name, tt := range map[string]struct {
		goal string
		is   *v1alpha1.Rollout
		want answer
	}{
		"it was out before":      {"version=1.1.0", rollout().Obj(), answer{missed, runs}},
		"it was applied before":  {"applied=1.1.0", rollout().Obj(), answer{missed, runs}},
		"it was promoted before": {"promoted=1.1.0", rollout().Obj(), answer{reached, "1.1.0 is Succeeded (#2)"}},
		"it was out, and is pinned": {
			"version=1.1.0", rollout().Pin("1.1.0").Obj(), answer{pending, "1.1.0 is pinned, and not promoted yet"},
		},
		"a pin that nobody has seen": {
			"version=1.1.0", changed(rollout().Pin("1.1.0").Obj(), behind), answer{pending, "the controller has not seen the newest spec of the Rollout yet"},
		},
		"idle, and a pin that nobody has seen": {
			"idle", changed(rollout().Pin("1.1.0").Obj(), behind), answer{pending, "the controller has not seen the newest spec of the Rollout yet"},
		},
		"it was out, and is forced": {
			"version=1.1.0", rollout().Annotate(v1alpha1.ForceDeployAnnotation, "1.1.0").Obj(),
			answer{pending, "the controller has not answered rollout.kuberik.com/force-deploy=1.1.0 yet"},
		},
		"idle, and another one is forced": {
			"idle", rollout().Annotate(v1alpha1.ForceDeployAnnotation, "1.1.0").Obj(),
			answer{pending, "the controller has not answered rollout.kuberik.com/force-deploy=1.1.0 yet"},
		},
		"it failed, and is retried": {
			"version=1.2.0", rollout().Annotate(v1alpha1.RetryAnnotation, "true").Obj(),
			answer{pending, "the controller has not answered rollout.kuberik.com/retry=true yet"},
		},
		"another one is forced": {"version=1.2.0", rollout().Annotate(v1alpha1.ForceDeployAnnotation, "1.1.0").Obj(), answer{missed, "1.2.0 is Failed (#3): it failed"}},
		"it comes late":         {"version=0.9.0", candidate("1.1.0"), answer{missed, "1.0.0 runs (#1), and 0.9.0 is not newer: it goes out only if it is pinned"}},
		"it is out, and then suspended": {
			"version=1.1.0", changed(history(entry().Succeeded()), suspend), answer{reached, "1.1.0 is Succeeded (#2)"},
		},
		"it deploys, and is suspended": {
			"version=1.1.0", changed(history(entry().Deploying()), suspend), answer{pending, "1.1.0 is Deploying (#2); Suspended: resume"},
		},
		"it deploys, and a target hinders it": {
			"version=1.1.0", hindered(history(entry().Deploying())), answer{pending, "1.1.0 is Deploying (#2): Kustomization web: the dry-run failed"},
		},
		"it waits, and the Rollout is stalled": {
			"version=1.1.0", stalled(candidate("1.1.0")), answer{pending, "1.1.0 is a candidate; Stalled: ImagePolicy shop does not exist"},
		},
		"it is not known, and nothing is read": {
			"version=1.1.0", notReady(fixture.MakeRollout("shop").Observed(1).Obj()),
			answer{pending, "1.1.0 is not known yet: Flux has not reported it, or it is not newer than what runs; Waiting: the registry does not answer"},
		},
		"it waits, and the one before failed": {
			"version=1.3.0", failedBefore(), answer{pending, "1.3.0 is a candidate, held: 1.2.0 failed; Failed: two pods crash"},
		},
		"the newest is out":              {"", history(entry().Succeeded()), answer{reached, "1.1.0 is Succeeded (#2)"}},
		"the newest failed":              {"", rollout().Obj(), answer{missed, "1.2.0 is Failed (#3): it failed"}},
		"the newest is a candidate":      {"", candidate("1.1.0"), answer{pending, "1.1.0 is a candidate"}},
		"the newest is what is pinned":   {"", rollout().Pin("1.1.0").Obj(), answer{pending, "1.1.0 is pinned, and not promoted yet"}},
		"nothing is known":               {"", history(), answer{pending, "no release is known yet; Waiting: the controller has not looked at it yet"}},
		"it is out":                      {"version=1.1.0", history(entry().Succeeded()), answer{reached, "1.1.0 is Succeeded (#2)"}},
		"it deploys":                     {"version=1.1.0", history(entry().Deploying()), answer{pending, "1.1.0 is Deploying (#2)"}},
		"it failed":                      {"version=1.1.0", history(entry().Failed()), answer{missed, "1.1.0 is Failed (#2): it failed"}},
		"it was cancelled":               {"version=1.1.0", history(entry().Cancelled()), answer{missed, "1.1.0 is Cancelled (#2)"}},
		"it bakes, and is applied":       {"applied=1.1.0", history(entry().Baking(fixture.Noon)), answer{reached, "1.1.0 is InProgress (#2)"}},
		"it deploys, and is not applied": {"applied=1.1.0", history(entry().Deploying()), answer{pending, "1.1.0 is Deploying (#2)"}},
		"it was promoted, and failed":    {"promoted=1.1.0", history(entry().Failed()), answer{reached, "1.1.0 is Failed (#2): it failed"}},
		"it is held": {
			"version=1.1.0", candidate("1.1.0", v1alpha1.CandidateHold{Message: "not passing: RolloutGate qa"}),
			answer{pending, "1.1.0 is a candidate, held: not passing: RolloutGate qa"},
		},
		"it is a candidate":       {"candidate=1.1.0", candidate("1.1.0"), answer{reached, "1.1.0 is a candidate"}},
		"a candidate that is out": {"candidate=1.1.0", history(entry().Deploying()), answer{reached, "1.1.0 is Deploying (#2)"}},
		"nobody knows it":         {"version=1.1.0", candidate("1.2.0"), answer{pending, "1.1.0 is not known yet: Flux has not reported it, or it is not newer than what runs"}},
		"idle":                    {"idle", history(entry().Failed()), answer{reached, "nothing deploys or bakes"}},
		"idle without a release":  {"idle", history(), answer{reached, "nothing deploys or bakes"}},
		"not idle":                {"idle", history(entry().Baking(fixture.Noon)), answer{pending, "1.1.0 is InProgress (#2)"}},
	} {
		t.Run(name, func(t *testing.T) {
			goal, err := parseGoal(tt.goal, "")
			if err != nil {
				t.Fatal(err)
			}
			state, text := goal.look(tt.is)
			if diff := cmp.Diff(tt.want, answer{state, text}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCandidateThatDisappearsIsSuperseded(t *testing.T) {
	goal, err := parseGoal("version=1.1.0", "")
	if err != nil {
		t.Fatal(err)
	}
	r := fixture.MakeRollout("shop").Observed(1).Obj()
	r.Status.ReleaseCandidates = []v1alpha1.ReleaseCandidate{{VersionInfo: v1alpha1.VersionInfo{Tag: "1.1.0"}}}
	if state, text := goal.look(r); state != pending {
		t.Fatalf("a candidate is %v: %s", state, text)
	}
	r.Status.ReleaseCandidates = nil
	if state, text := goal.look(r); state != missed || text != "1.1.0 is no candidate any more: it was superseded or withdrawn" {
		t.Errorf("got %v: %s", state, text)
	}
}

// A promotion since the wait began counts although it is over.
func TestReleaseThatWasSupersededMeanwhileWasOut(t *testing.T) {
	deploying := fixture.MakeEntry("1.1.0").ID(2).Deploying()
	done, next := fixture.MakeEntry("1.1.0").ID(2).Succeeded(), fixture.MakeEntry("1.2.0").ID(3).Deploying()
	rollout := fixture.MakeRollout("shop").Observed(1)
	g, err := parseGoal("version=1.1.0", "")
	if err != nil {
		t.Fatal(err)
	}
	if state, text := g.look(rollout.History(deploying).Obj()); state != pending {
		t.Fatalf("at first it is %v: %s", state, text)
	}
	if state, text := g.look(rollout.History(next, done).Obj()); state != reached || text != "1.1.0 is Succeeded (#2)" {
		t.Errorf("got %v: %s", state, text)
	}
}

func TestWrongGoals(t *testing.T) {
	for _, text := range []string{"=", "version", "version=", "idle=1", "ready=1.0.0"} {
		if _, err := parseGoal(text, ""); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestGoalAboutAVersionThatIsNamedApart(t *testing.T) {
	for _, tt := range []struct{ text, version, kind, tag string }{
		{"", "1.1.0", forVersion, "1.1.0"},
		{"applied", "1.1.0", forApplied, "1.1.0"},
		{"applied=1.1.0", "1.1.0", forApplied, "1.1.0"},
	} {
		if g, err := parseGoal(tt.text, tt.version); err != nil || g.kind != tt.kind || g.tag != tt.tag {
			t.Errorf("%s of %s: %+v, %v", tt.text, tt.version, g, err)
		}
	}
	for _, text := range []string{"version=1.2.0", "idle"} {
		if _, err := parseGoal(text, "1.1.0"); err == nil {
			t.Errorf("%s of 1.1.0 is accepted", text)
		}
	}
}

func TestStateOfABakeSaysHowMuchOfItIsOver(t *testing.T) {
	for name, tt := range map[string]struct {
		bake *fixture.RolloutBuilder
		now  time.Time
		want string
	}{
		"a third":        {fixture.MakeRollout("shop").BakeTime(30 * time.Minute), fixture.Noon.Add(10 * time.Minute), "Baking 33%"},
		"over its end":   {fixture.MakeRollout("shop").BakeTime(30 * time.Minute), fixture.Noon.Add(time.Hour), "Baking 100%"},
		"without a time": {fixture.MakeRollout("shop"), fixture.Noon, "InProgress"},
	} {
		t.Run(name, func(t *testing.T) {
			r := tt.bake.History(fixture.MakeEntry("1.0.0").Baking(fixture.Noon)).Obj()
			if got := stateOf(r, r.Current(), tt.now); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
