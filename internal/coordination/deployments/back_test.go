// SPDX-License-Identifier: Apache-2.0

package deployments_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
)

func wasReadyWith(templates string) func(*coordinationv1.DeploymentState) {
	return func(s *coordinationv1.DeploymentState) { s.ReadyTemplates = strings.Fields(templates) }
}

// TestNoBakeOnTheWayBack has a member that is rolled out with t1 in its turn, a minute ago,
// in a coordination with minReadySeconds of an hour.
func TestNoBakeOnTheWayBack(t *testing.T) {
	t.Parallel()

	bakes, over := "web: a, DeploymentsInProgress", "web: nobody, AllDeploymentsReady"
	tests := map[string]struct {
		ready string
		want  string
	}{
		"a journal of another implementation knows no template": {want: bakes},
		"a template that was never ready":                       {ready: "t0", want: bakes},
		"back from one that was ready":                          {ready: "t2 t1 t0", want: over},
		"back from one that was never ready":                    {ready: "t1 t0", want: over},
		"back by several":                                       {ready: "t4 t3 t2 t1", want: over},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			past := state("a", "t1", started(ago(time.Minute)), finished(ago(time.Minute)), wasReadyWith(tt.ready))
			check(t, of(coordination("web", seconds(3600), resume, wrote("a", past)), deployment("a", "web")), tt.want)
		})
	}
}

func TestEventSaysWhyThereWasNoBake(t *testing.T) {
	t.Parallel()

	past := state("a", "t1", started(ago(time.Minute)), wasReadyWith("t2 t1"))
	p := deployments.Decide(of(coordination("web", seconds(3600), wrote("a", past)), deployment("a", "web")))
	want := deployments.Note{Reason: coordinationv1.ActiveDeploymentReadyEvent, Message: "shop/a is rolled out, with a template that was ready before"}
	if notes := journalOf(t, p, "web").Notes; !slices.Contains(notes, want) {
		t.Errorf("the notes are %+v, want %+v among them", notes, want)
	}
}

func TestReadyTemplates(t *testing.T) {
	t.Parallel()

	down := func(d *deployments.Deployment) { d.RolledOut, d.AvailableReplicas = false, 2 }
	empty := func(d *deployments.Deployment) { d.Replicas, d.UpdatedReplicas, d.AvailableReplicas = 0, 0, 0 }
	begun := started(ago(time.Minute))
	tests := map[string]struct {
		active string
		past   coordinationv1.DeploymentState
		change func(*deployments.Deployment)
		want   string
	}{
		"one that is idle":                   {past: state("a", "t1"), change: idle, want: "t1"},
		"one that was idle before":           {past: state("a", "t1", wasReadyWith("t1 t0")), change: idle, want: "t1 t0"},
		"one that is idle with a Pod down":   {past: state("a", "t1", wasReadyWith("t0")), change: down, want: "t0"},
		"one that has no Pods":               {past: state("a", "t1", wasReadyWith("t0")), change: empty, want: "t0"},
		"one that waits":                     {past: state("a", "t1", wasReadyWith("t1")), change: waiting, want: "t1"},
		"one that rolls out":                 {active: "a", past: state("a", "t2", begun, wasReadyWith("t1")), change: rolling(1), want: "t1"},
		"one that bakes":                     {active: "a", past: state("a", "t1", begun, finished(ago(59*time.Second)), wasReadyWith("t0")), want: "t0"},
		"one whose bake ends":                {active: "a", past: state("a", "t1", begun, finished(ago(time.Minute)), wasReadyWith("t0")), want: "t1 t0"},
		"one that has gone back":             {active: "a", past: state("a", "t1", begun, wasReadyWith("t3 t2 t1 t0")), want: "t1 t0"},
		"the oldest is forgotten":            {past: state("a", "t1", wasReadyWith("t6 t5 t4 t3 t2")), change: idle, want: "t1 t6 t5 t4 t3"},
		"a Deployment that was created anew": {past: state("a", "t1", wasReadyWith("t2 t1"), func(s *coordinationv1.DeploymentState) { s.UID = "another" }), change: idle, want: "t1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.change == nil {
				tt.change = func(*deployments.Deployment) {}
			}
			in := of(coordination("web", seconds(60), wrote(tt.active, tt.past)), but(deployment("a", "web"), tt.change))
			if got := strings.Join(entryOf(t, deployments.Decide(in), "web", "a").ReadyTemplates, " "); got != tt.want {
				t.Errorf("the templates are %q, want %q", got, tt.want)
			}
		})
	}
}

// TestOnlyWhatAllJournalsHaveWasReady: one journal of two could not be written when the
// member had gone back from t2 to t1.
func TestOnlyWhatAllJournalsHaveWasReady(t *testing.T) {
	t.Parallel()

	entry := func(templates string) coordinationv1.DeploymentState {
		return state("a", "t1", started(ago(time.Hour)), finished(ago(time.Hour)), wasReadyWith(templates))
	}
	in := of(coordination("east", wrote("", entry("t2 t1 t0"))), coordination("west", wrote("", entry("t1 t0"))), but(deployment("a", "east", "west"), waiting))
	if got := entryOf(t, deployments.Decide(in), "east", "a").ReadyTemplates; !slices.Equal(got, []string{"t1", "t0"}) {
		t.Errorf("the templates are %q", got)
	}
}
