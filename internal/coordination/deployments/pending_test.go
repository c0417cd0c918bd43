// SPDX-License-Identifier: Apache-2.0

package deployments_test

import (
	"testing"
	"time"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
)

func TestPending(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		change  func(*deployments.Deployment)
		journal []coordinationv1.DeploymentState
		want    bool
	}{
		"rolled out": {change: func(*deployments.Deployment) {}},
		"idle":       {change: idle},
		"a new template": {
			change: waiting, want: true,
		},
		"a new template at no replicas": {
			change: func(d *deployments.Deployment) {
				waiting(d)
				d.OthersUp, d.Replicas, d.AvailableReplicas = false, 0, 0
			},
			want: true,
		},
		"an old ReplicaSet is up": {
			change: func(d *deployments.Deployment) { idle(d); d.OthersUp, d.UpdatedReplicas = true, 1 }, want: true,
		},
		"rolls by itself": {change: rolling(0), want: true},
		"a first rollout that nobody held": {
			change: func(d *deployments.Deployment) { d.RolledOut, d.Unfinished, d.AvailableReplicas = false, true, 1 },
			want:   true,
		},
		"a first rollout that was stopped, as the journal has it": {
			change:  func(d *deployments.Deployment) { idle(d); d.AvailableReplicas = 1 },
			journal: []coordinationv1.DeploymentState{state("a", "t1", started(ago(time.Minute)))},
			want:    true,
		},
		"a turn that was begun and never finished, held by people since": {
			change: func(d *deployments.Deployment) { idle(d); d.AvailableReplicas = 1 },
			journal: []coordinationv1.DeploymentState{state("a", "t1", started(ago(time.Minute)),
				func(s *coordinationv1.DeploymentState) { s.HasPendingChanges = false })},
			want: true,
		},
		"a first rollout that was stopped, and came up by itself": {
			change:  idle,
			journal: []coordinationv1.DeploymentState{state("a", "t1", started(ago(time.Minute)))},
		},
		"numbers that are about an earlier generation": {
			change:  func(d *deployments.Deployment) { idle(d); d.Generation = 2 },
			journal: []coordinationv1.DeploymentState{state("a", "t1", started(ago(time.Minute)))},
			want:    true,
		},
		"the template that waited was taken back": {
			change:  func(d *deployments.Deployment) { idle(d); d.AvailableReplicas = 1 },
			journal: []coordinationv1.DeploymentState{state("a", "t2", started(ago(time.Minute)))},
		},
		"the same, and it is unpaused": {
			change:  func(d *deployments.Deployment) { d.RolledOut, d.AvailableReplicas = false, 1 },
			journal: []coordinationv1.DeploymentState{state("a", "t2", started(ago(time.Minute)))},
		},
		"a scale while idle": {
			change:  func(d *deployments.Deployment) { idle(d); d.Replicas, d.Generation = 5, 2 },
			journal: []coordinationv1.DeploymentState{state("a", "t1")},
		},
		"a Pod fails while idle": {
			change:  func(d *deployments.Deployment) { idle(d); d.AvailableReplicas, d.Available = 2, false },
			journal: []coordinationv1.DeploymentState{state("a", "t1", finished(ago(time.Hour)))},
		},
		"a Pod fails, and it is unpaused": {
			change: func(d *deployments.Deployment) {
				d.AvailableReplicas, d.Available, d.RolledOut, d.Unfinished = 2, false, false, true
			},
			journal: []coordinationv1.DeploymentState{state("a", "t1", finished(ago(time.Hour)))},
		},
		"the same, and its rollout was never seen": {
			change: func(d *deployments.Deployment) {
				d.AvailableReplicas, d.Available, d.RolledOut, d.Unfinished = 2, false, false, true
			},
			journal: []coordinationv1.DeploymentState{state("a", "t1")},
		},
		"another template, and it is unpaused": {
			change:  func(d *deployments.Deployment) { d.AvailableReplicas, d.RolledOut, d.Unfinished = 2, false, true },
			journal: []coordinationv1.DeploymentState{state("a", "t0", finished(ago(time.Hour)))},
			want:    true,
		},
		"a new template that people hold": {
			change: func(d *deployments.Deployment) { waiting(d); d.UserPaused = true },
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := of(coordination("web", wrote("", tt.journal...)), but(deployment("a", "web"), tt.change))
			p := deployments.Decide(in)
			if got := entryOf(t, p, "web", "a").HasPendingChanges; got != tt.want {
				t.Errorf("pending: %t, want %t", got, tt.want)
			}
			if got := journalOf(t, p, "web").Status.ActiveDeployment != ""; got != tt.want {
				t.Errorf("it has the turn: %t, want %t", got, tt.want)
			}
			if again := deployments.Decide(stored(in, p)); again.Begins {
				t.Errorf("it changes its mind: %v, and then %v", summary(p), summary(again))
			}
		})
	}
}
