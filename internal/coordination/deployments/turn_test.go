// SPDX-License-Identifier: Apache-2.0

package deployments_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
)

func resume(c *deployments.Coordination) { c.Spec.IdlePolicy = coordinationv1.IdleResume }

func seconds(n int32) func(*deployments.Coordination) {
	return func(c *deployments.Coordination) { c.Spec.MinReadySeconds = n }
}

// justStarted and longDone return the usual entries of the member that has the turn.
func justStarted(name string) coordinationv1.DeploymentState {
	return state(name, "t2", started(ago(time.Minute)))
}

func longDone(name string) coordinationv1.DeploymentState {
	return state(name, "t1", started(ago(time.Hour)), finished(ago(30*time.Minute)))
}

func TestTurns(t *testing.T) {
	t.Parallel()

	order := func(n string) func(*deployments.Deployment) {
		return func(d *deployments.Deployment) { d.Order = n }
	}
	tests := map[string]struct {
		in   deployments.Input
		want []string
	}{
		"nothing to do": {
			in:   of(coordination("web", wrote("")), but(deployment("a", "web"), idle)),
			want: []string{"web: nobody, AllDeploymentsReady"},
		},
		"no Deployment is selected": {
			in:   of(coordination("web"), deployment("a")),
			want: []string{"web: nobody, AllDeploymentsReady"},
		},
		"the first that waits is released": {
			in:   of(coordination("web"), but(deployment("d2", "web"), waiting), but(deployment("d10", "web"), waiting)),
			want: []string{"web: d10, DeploymentsInProgress", "Unpause d10"},
		},
		"an order that is set comes before the name": {
			in:   of(coordination("web"), but(deployment("a", "web"), waiting), but(deployment("b", "web"), waiting, order("-1"))),
			want: []string{"web: b, DeploymentsInProgress", "Unpause b"},
		},
		"one that is half-way comes before any order": {
			in: of(coordination("web"), but(deployment("a", "web"), waiting, order("-1")),
				but(deployment("b", "web"), waiting, func(d *deployments.Deployment) { d.TemplateHasSet, d.UpdatedReplicas = true, 1 })),
			want: []string{"web: b, DeploymentsInProgress", "Unpause b"},
		},
		"a number of replicas that is about an earlier template is not half-way": {
			in: of(coordination("web"), but(deployment("a", "web"), waiting), but(deployment("b", "web"), waiting, func(d *deployments.Deployment) {
				d.TemplateHasSet, d.UpdatedReplicas, d.Generation = true, 3, 2
			})),
			want: []string{"web: a, DeploymentsInProgress", "Unpause a"},
		},
		"who was stopped in its turn comes before those that have not begun": {
			in:   of(coordination("web", wrote("", justStarted("b"))), but(deployment("a", "web"), waiting), but(deployment("b", "web"), waiting)),
			want: []string{"web: b, DeploymentsInProgress", "Unpause b"},
		},
		"who had a turn waits for those that had none": {
			in: of(coordination("web", func(c *deployments.Coordination) {
				wrote("b", state("a", "t1", started(ago(time.Minute)), finished(ago(time.Second))), state("b", "t1", started(ago(time.Second)), finished(ago(0))))(c)
			}), but(deployment("a", "web"), waiting), deployment("b", "web"), but(deployment("c", "web"), waiting)),
			want: []string{"web: c, DeploymentsInProgress", "Pause b", "Unpause c"},
		},
		"a turn before the last rest does not count": {
			in: of(coordination("web", func(c *deployments.Coordination) {
				wrote("", state("a", "t1", started(ago(time.Minute)), finished(ago(time.Second))))(c)
			}), but(deployment("a", "web"), waiting), but(deployment("c", "web"), waiting)),
			want: []string{"web: a, DeploymentsInProgress", "Unpause a"},
		},
		"nor does one before others began to wait": {
			in: of(coordination("web", wrote("b", state("a", "t1", started(ago(2*time.Hour)), finished(ago(2*time.Hour))), longDone("b"))),
				but(deployment("a", "web"), waiting), deployment("b", "web"), but(deployment("c", "web"), waiting)),
			want: []string{"web: a, DeploymentsInProgress", "Pause b", "Unpause a"},
		},
		"a new template while it bakes ends the turn, for one that had none": {
			in:   of(coordination("web", seconds(3600), wrote("a", longDone("a"))), but(deployment("a", "web"), rolling(1)), but(deployment("b", "web"), waiting)),
			want: []string{"web: b, DeploymentsInProgress", "Pause a", "Unpause b"},
		},
		"a new template while it bakes, and nobody else waits": {
			in:   of(coordination("web", seconds(3600), wrote("a", longDone("a"))), but(deployment("a", "web"), rolling(1))),
			want: []string{"web: a, DeploymentsInProgress"},
		},
		"a new template while it bakes and is not well goes straight through": {
			in: of(coordination("web", seconds(3600), wrote("a", state("a", "t1", started(ago(time.Hour)), finished(ago(30*time.Minute)), func(s *coordinationv1.DeploymentState) {
				s.UnavailableSince = ago(time.Minute)
			}))), but(deployment("a", "web"), rolling(1)), but(deployment("b", "web"), waiting)),
			want: []string{"web: a, DeploymentsInProgress"},
		},
		"a new template before it is rolled out keeps the turn": {
			in:   of(coordination("web", wrote("a", state("a", "t1", started(ago(time.Minute))))), but(deployment("a", "web"), rolling(1)), but(deployment("b", "web"), waiting)),
			want: []string{"web: a, DeploymentsInProgress"},
		},
		"one that rolls already is adopted": {
			in:   of(coordination("web"), but(deployment("a", "web"), waiting), but(deployment("b", "web"), rolling(1))),
			want: []string{"web: b, DeploymentsInProgress"},
		},
		"one that was released, and has not begun, goes before those that are paused": {
			in: of(coordination("web"), but(deployment("a", "web"), waiting),
				but(deployment("b", "web"), waiting, func(d *deployments.Deployment) { d.Paused, d.HeldBy = false, "" })),
			want: []string{"web: b, DeploymentsInProgress"},
		},
		"of several that roll the furthest goes on and the others are held": {
			in:   of(coordination("web"), but(deployment("a", "web"), rolling(1)), but(deployment("b", "web"), rolling(2)), but(deployment("c", "web"), rolling(0))),
			want: []string{"web: b, DeploymentsInProgress", "Pause a", "Pause c"},
		},
		"written down but not yet released: released again": {
			in:   of(coordination("web", wrote("a", justStarted("a"))), but(deployment("a", "web"), waiting)),
			want: []string{"web: a, DeploymentsInProgress", "Unpause a"},
		},
		"a paused one is never done": {
			in:   of(coordination("web", wrote("a", longDone("a"))), but(deployment("a", "web"), idle, func(d *deployments.Deployment) { d.RolledOut = true })),
			want: []string{"web: a, DeploymentsInProgress", "Unpause a"},
		},
		"while one rolls the others wait": {
			in:   of(coordination("web", wrote("b", justStarted("b"))), but(deployment("a", "web"), waiting), but(deployment("b", "web"), rolling(1))),
			want: []string{"web: b, DeploymentsInProgress"},
		},
		"all updated but not all available is not rolled out": {
			in:   of(coordination("web", wrote("b", justStarted("b"))), but(deployment("a", "web"), waiting), but(deployment("b", "web"), rolling(3))),
			want: []string{"web: b, DeploymentsInProgress"},
		},
		"rolled out and not ready for long enough": {
			in: of(coordination("web", seconds(60), wrote("b", state("b", "t1", started(ago(time.Minute)), finished(ago(59*time.Second))))),
				but(deployment("a", "web"), waiting), deployment("b", "web")),
			want: []string{"web: b, DeploymentsInProgress"},
		},
		"ready for long enough: the next": {
			in: of(coordination("web", seconds(60), wrote("b", state("b", "t1", started(ago(2*time.Minute)), finished(ago(time.Minute))))),
				but(deployment("a", "web"), waiting), deployment("b", "web")),
			want: []string{"web: a, DeploymentsInProgress", "Pause b", "Unpause a"},
		},
		"ready for long enough, and under Resume not paused": {
			in:   of(coordination("web", resume, wrote("b", longDone("b"))), but(deployment("a", "web"), waiting), deployment("b", "web")),
			want: []string{"web: a, DeploymentsInProgress", "Unpause a"},
		},
		"the last one is done": {
			in:   of(coordination("web", wrote("b", longDone("b"))), but(deployment("a", "web"), idle), deployment("b", "web")),
			want: []string{"web: nobody, AllDeploymentsReady", "Pause b"},
		},
		"negative seconds are none": {
			in:   of(coordination("web", seconds(-5), wrote("b", longDone("b"))), deployment("b", "web")),
			want: []string{"web: nobody, AllDeploymentsReady", "Pause b"},
		},
		"the active one is gone": {
			in:   of(coordination("web", wrote("b", justStarted("b"))), but(deployment("a", "web"), waiting)),
			want: []string{"web: a, DeploymentsInProgress", "Unpause a"},
		},
		"the active one is not selected any more": {
			in:   of(coordination("web", wrote("b", justStarted("b"))), but(deployment("a", "web"), waiting), but(deployment("b"), rolling(1))),
			want: []string{"web: a, DeploymentsInProgress", "Unpause a"},
		},
		"the active one was created anew": {
			in: of(coordination("web", wrote("b", justStarted("b"))), but(deployment("a", "web"), waiting),
				but(deployment("b", "web"), waiting, func(d *deployments.Deployment) { d.UID = "another" })),
			want: []string{"web: a, DeploymentsInProgress", "Unpause a"},
		},
		"people hold the active one": {
			in:   of(coordination("web", wrote("b", justStarted("b"))), but(deployment("a", "web"), waiting), but(deployment("b", "web"), rolling(1), userHeld)),
			want: []string{"web: b, ActiveDeploymentHeld", "Pause b"},
		},
		"people hold one that waits": {
			in:   of(coordination("web"), but(deployment("a", "web"), waiting, userHeld), but(deployment("b", "web"), waiting)),
			want: []string{"web: b, DeploymentsInProgress", "Unpause b"},
		},
		"people hold one that rolls next to the active one": {
			in:   of(coordination("web", wrote("b", justStarted("b"))), but(deployment("a", "web"), rolling(1), userHeld), but(deployment("b", "web"), rolling(1))),
			want: []string{"web: b, DeploymentsInProgress", "Pause a"},
		},
		"another one begins by itself: held": {
			in:   of(coordination("web", resume, wrote("b", justStarted("b"))), but(deployment("a", "web"), rolling(2)), but(deployment("b", "web"), rolling(1))),
			want: []string{"web: b, DeploymentsInProgress", "Pause a"},
		},
		"who has to stop comes before who may go": {
			in:   of(coordination("web", wrote("a", justStarted("a"))), but(deployment("a", "web"), waiting), but(deployment("b", "web"), rolling(1))),
			want: []string{"web: a, DeploymentsInProgress", "Pause b", "Unpause a"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, tt.in, tt.want...)
		})
	}
}

func TestOverlap(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		in   deployments.Input
		want []string
	}{
		"one at a time over a shared Deployment": {
			in: of(coordination("east"), coordination("west"),
				but(deployment("a", "east"), waiting), but(deployment("b", "east", "west"), waiting), but(deployment("c", "west"), waiting)),
			want: []string{"east: a, DeploymentsInProgress", "west: nobody, WaitingForCoordination", "Unpause a"},
		},
		"one at a time through a third": {
			in: of(coordination("east"), coordination("mid"), coordination("west"),
				but(deployment("a", "east"), waiting), but(deployment("b", "east", "mid"), idle), but(deployment("c", "mid", "west"), idle), but(deployment("d", "west"), waiting)),
			want: []string{"east: a, DeploymentsInProgress", "mid: nobody, AllDeploymentsReady", "west: nobody, WaitingForCoordination", "Unpause a"},
		},
		"all that select the active one name it": {
			in: of(coordination("east"), coordination("west"),
				but(deployment("b", "east", "west"), waiting), but(deployment("c", "west"), waiting)),
			want: []string{"east: b, DeploymentsInProgress", "west: b, DeploymentsInProgress", "Unpause b"},
		},
		"those that share nothing go on their own": {
			in:   of(coordination("east"), coordination("west"), but(deployment("a", "east"), waiting), but(deployment("c", "west"), waiting)),
			want: []string{"east: a, DeploymentsInProgress", "west: c, DeploymentsInProgress", "Unpause a", "Unpause c"},
		},
		"half a journal is completed first": {
			in: of(coordination("east", wrote("b", justStarted("b"))), coordination("west", wrote("")),
				but(deployment("a", "east"), waiting), but(deployment("b", "east", "west"), waiting)),
			want: []string{"east: b, DeploymentsInProgress", "west: b, DeploymentsInProgress", "Unpause b"},
		},
		"half an end is completed, and who was chosen stays": {
			in: of(coordination("east", wrote("c", justStarted("c"))), coordination("west", wrote("b", longDone("b"))),
				but(deployment("a", "east"), waiting), deployment("b", "east", "west"), but(deployment("c", "east"), waiting)),
			want: []string{"east: c, DeploymentsInProgress", "west: nobody, AllDeploymentsReady", "Pause b", "Unpause c"},
		},
		"of two that roll the furthest along keeps the turn": {
			in: of(coordination("east", wrote("a", justStarted("a"))), coordination("west", wrote("c", justStarted("c"))),
				but(deployment("a", "east"), rolling(1)), but(deployment("b", "east", "west"), idle), but(deployment("c", "west"), rolling(2))),
			want: []string{"east: nobody, WaitingForCoordination", "west: c, DeploymentsInProgress", "Pause a"},
		},
		"one that is rolled out and not ready for long enough is further": {
			in: of(coordination("east", seconds(60), wrote("a", state("a", "t1", started(ago(time.Minute)), finished(ago(time.Second))))),
				coordination("west", wrote("c", justStarted("c"))),
				deployment("a", "east"), but(deployment("b", "east", "west"), idle), but(deployment("c", "west"), rolling(2))),
			want: []string{"east: a, DeploymentsInProgress", "west: nobody, WaitingForCoordination", "Pause c"},
		},
		"the largest minReadySeconds counts": {
			in: of(coordination("east", seconds(10), wrote("b", state("b", "t1", started(ago(time.Minute)), finished(ago(11*time.Second))))),
				coordination("west", seconds(12), wrote("b", state("b", "t1", started(ago(time.Minute)), finished(ago(11*time.Second))))),
				deployment("b", "east", "west")),
			want: []string{"east: b, DeploymentsInProgress", "west: b, DeploymentsInProgress"},
		},
		"a turn counts since the first of them had something to do": {
			in: of(coordination("east", wrote("b", longDone("b"), state("a", "t1", started(ago(30*time.Minute)), finished(ago(20*time.Minute))))),
				coordination("west", wrote("b", longDone("b")), func(c *deployments.Coordination) {
					c.Journal.Conditions[0].LastTransitionTime = *ago(time.Minute)
				}),
				but(deployment("a", "east"), waiting), deployment("b", "east", "west"), but(deployment("c", "west"), waiting)),
			want: []string{"east: nobody, WaitingForCoordination", "west: c, DeploymentsInProgress", "Pause b", "Unpause c"},
		},
		"paused while idle unless all say Resume": {
			in:   of(coordination("east", resume), coordination("west"), deployment("a", "east"), deployment("b", "east", "west")),
			want: []string{"east: nobody, AllDeploymentsReady", "west: nobody, AllDeploymentsReady", "Pause b"},
		},
		"one that waits for a failure names its place": {
			in: of(coordination("east", wrote("a", justStarted("a"))), coordination("west", wrote("")),
				but(deployment("a", "east"), rolling(1), func(d *deployments.Deployment) {
					d.Failure = &deployments.Failure{Message: "gave up.", At: noon}
				}), but(deployment("b", "east", "west"), waiting)),
			want: []string{"east: a, RolloutFailed", "west: nobody, WaitingForCoordination"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, tt.in, tt.want...)
		})
	}
}

// failedAt makes it a Deployment that Kubernetes gave up at a time.
func failedAt(at time.Time) func(*deployments.Deployment) {
	return func(d *deployments.Deployment) {
		rolling(1)(d)
		d.Failure = &deployments.Failure{Message: `ReplicaSet "a-1" has timed out progressing.`, At: at}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		started time.Duration // ago
		member  deployments.Deployment
		want    string
		recheck time.Time
	}{
		"said since the turn began": {
			started: 20 * time.Minute, member: but(deployment("a", "web"), failedAt(noon.Add(-time.Minute))),
			want: coordinationv1.RolloutFailedReason,
		},
		"said at the moment it began": {
			started: 20 * time.Minute, member: but(deployment("a", "web"), failedAt(noon.Add(-20*time.Minute))),
			want: coordinationv1.RolloutFailedReason,
		},
		"left over from before": {
			started: time.Minute, member: but(deployment("a", "web"), failedAt(noon.Add(-time.Hour))),
			want: coordinationv1.DeploymentsInProgressReason, recheck: noon.Add(9 * time.Minute),
		},
		"left over, and still there at the deadline of this rollout": {
			started: 10 * time.Minute, member: but(deployment("a", "web"), failedAt(noon.Add(-time.Hour))),
			want: coordinationv1.RolloutFailedReason,
		},
		"left over, and there is no deadline": {
			started: time.Hour,
			member: but(deployment("a", "web"), failedAt(noon.Add(-2*time.Hour)), func(d *deployments.Deployment) {
				d.ProgressDeadline = 0
			}),
			want: coordinationv1.DeploymentsInProgressReason,
		},
		"no failure, long after the deadline": {
			started: time.Hour, member: but(deployment("a", "web"), rolling(1)),
			want: coordinationv1.DeploymentsInProgressReason,
		},
		"a success ends it": {
			started: time.Minute,
			member: but(deployment("a", "web"), func(d *deployments.Deployment) {
				d.Template, d.Failure = "t2", &deployments.Failure{At: noon}
			}),
			want: coordinationv1.AllDeploymentsReadyReason,
		},
		"a new template begins anew": {
			started: 20 * time.Minute,
			member: but(deployment("a", "web"), failedAt(noon.Add(-time.Minute)), func(d *deployments.Deployment) {
				d.Template = "t3"
			}),
			want: coordinationv1.DeploymentsInProgressReason, recheck: noon.Add(10 * time.Minute),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := coordination("web", resume, wrote("a", state("a", "t2", started(ago(tt.started)))))
			p := deployments.Decide(of(c, tt.member))
			got := ready(journalOf(t, p, "web").Status)
			if got.Reason != tt.want || !p.RecheckAt.Equal(tt.recheck) {
				t.Errorf("Ready is %s, to be looked at again at %s; want %s at %s", got.Reason, p.RecheckAt, tt.want, tt.recheck)
			}
		})
	}
}

// A rollout that breaks while it bakes blocks the group, and the conditions report it.
func TestRolloutThatBreaksAfterItWasComplete(t *testing.T) {
	t.Parallel()

	unavailable := func(since time.Duration) func(*coordinationv1.DeploymentState) {
		return func(s *coordinationv1.DeploymentState) { s.ReadySince, s.UnavailableSince = nil, ago(since) }
	}
	down := func(d *deployments.Deployment) { d.RolledOut, d.Available, d.AvailableReplicas = false, false, 0 }
	some := func(d *deployments.Deployment) { d.RolledOut, d.AvailableReplicas = false, 2 }
	never := func(d *deployments.Deployment) { d.ProgressDeadline = 0 }
	tests := map[string]struct {
		changes []func(*deployments.Deployment)
		past    func(*coordinationv1.DeploymentState)
		want    string
		recheck time.Time
	}{
		"now": {
			changes: []func(*deployments.Deployment){down}, want: coordinationv1.DeploymentsInProgressReason, recheck: noon.Add(10 * time.Minute),
		},
		"a while ago": {
			changes: []func(*deployments.Deployment){down}, past: unavailable(9 * time.Minute),
			want: coordinationv1.DeploymentsInProgressReason, recheck: noon.Add(time.Minute),
		},
		"for longer than a rollout may make no progress": {
			changes: []func(*deployments.Deployment){down}, past: unavailable(10 * time.Minute), want: coordinationv1.RolloutFailedReason,
		},
		"in part": {
			changes: []func(*deployments.Deployment){some}, past: unavailable(10 * time.Minute), want: coordinationv1.RolloutFailedReason,
		},
		"without a deadline": {
			changes: []func(*deployments.Deployment){down, never}, past: unavailable(time.Hour), want: coordinationv1.DeploymentsInProgressReason,
		},
		"and is available again": {
			past: unavailable(time.Hour), want: coordinationv1.DeploymentsInProgressReason, recheck: noon.Add(time.Hour),
		},
		"and has a new template": {
			changes: []func(*deployments.Deployment){down, rolling(1)}, past: unavailable(time.Hour), want: coordinationv1.DeploymentsInProgressReason,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			past := longDone("a")
			if tt.past != nil {
				tt.past(&past)
			}
			p := deployments.Decide(of(coordination("web", seconds(3600), wrote("a", past)), but(deployment("a", "web"), tt.changes...)))
			got := ready(journalOf(t, p, "web").Status)
			if got.Reason != tt.want || !p.RecheckAt.Equal(tt.recheck) {
				t.Errorf("Ready is %s, to be looked at again at %s; want %s at %s", got.Reason, p.RecheckAt, tt.want, tt.recheck)
			}
		})
	}
}

// A crash loop has moments in which everything is available.
func TestCrashLoopFailsTheRollout(t *testing.T) {
	t.Parallel()

	down := func(d *deployments.Deployment) { d.RolledOut, d.Available, d.AvailableReplicas = false, false, 0 }
	tests := map[string]struct {
		available time.Duration
		want      string
	}{
		"available for moments":                                   {available: time.Minute, want: coordinationv1.RolloutFailedReason},
		"available for as long as a rollout may make no progress": {available: 10 * time.Minute, want: coordinationv1.DeploymentsInProgressReason},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := of(coordination("web", seconds(3600), wrote("a", longDone("a"))), deployment("a", "web"))
			look := func(after time.Duration, changes ...func(*deployments.Deployment)) string {
				in.Now = in.Now.Add(after)
				in.Deployments[0] = but(deployment("a", "web"), changes...)
				status := journalOf(t, deployments.Decide(in), "web").Status
				in.Coordinations[0].Journal = status
				return ready(status).Reason
			}
			got := look(0, down)
			for range 5 {
				look(2 * time.Minute)
				got = look(tt.available, down)
			}
			if got != tt.want {
				t.Errorf("Ready is %s, want %s", got, tt.want)
			}
		})
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		now    time.Time
		past   coordinationv1.DeploymentState
		member deployments.Deployment
		want   coordinationv1.DeploymentState
	}{
		"the first moment that it is rolled out is kept, rounded up": {
			now: noon.Add(time.Millisecond), past: state("a", "t1", started(ago(time.Minute))), member: deployment("a", "web"),
			want: state("a", "t1", started(ago(time.Minute)), finished(ago(-time.Second))),
		},
		"and only the first": {
			now: noon, past: state("a", "t1", started(ago(time.Minute)), finished(ago(time.Second))), member: deployment("a", "web"),
			want: state("a", "t1", started(ago(time.Minute)), finished(ago(time.Second))),
		},
		"a Pod that is missing for a moment does not matter while enough are available": {
			now: noon, past: state("a", "t1", started(ago(time.Minute)), finished(ago(time.Second))),
			member: but(deployment("a", "web"), func(d *deployments.Deployment) { d.RolledOut, d.AvailableReplicas = false, 2 }),
			want:   state("a", "t1", started(ago(time.Minute)), finished(ago(time.Second))),
		},
		"too few available": {
			now: noon, past: state("a", "t1", started(ago(time.Minute)), finished(ago(time.Second))),
			member: but(deployment("a", "web"), func(d *deployments.Deployment) { d.RolledOut, d.Available, d.AvailableReplicas = false, false, 2 }),
			want: state("a", "t1", started(ago(time.Minute)), finished(ago(time.Second)), func(s *coordinationv1.DeploymentState) {
				s.ReadySince = nil
			}),
		},
		"a scale up, with the new replicas on their way": {
			now: noon, past: state("a", "t1", started(ago(time.Minute)), finished(ago(time.Second))),
			member: but(deployment("a", "web"), func(d *deployments.Deployment) {
				d.RolledOut, d.Available, d.Replicas = false, false, 9
			}),
			want: state("a", "t1", started(ago(time.Minute)), finished(ago(time.Second))),
		},
		"a scale down": {
			now: noon, past: state("a", "t1", started(ago(time.Minute)), finished(ago(time.Second))),
			member: but(deployment("a", "web"), func(d *deployments.Deployment) {
				d.Replicas, d.UpdatedReplicas, d.AvailableReplicas = 1, 1, 1
			}),
			want: state("a", "t1", started(ago(time.Minute)), finished(ago(time.Second)), func(s *coordinationv1.DeploymentState) {
				s.ReadyReplicas = 1
			}),
		},
		"a scale up while it is paused, once the new replicas are there": {
			now: noon, past: state("a", "t1", started(ago(time.Minute)), finished(ago(time.Second))),
			member: but(deployment("a", "web"), idle, func(d *deployments.Deployment) {
				d.Replicas, d.UpdatedReplicas, d.AvailableReplicas = 9, 9, 9
			}),
			want: state("a", "t1", started(ago(time.Minute)), finished(ago(time.Second)), func(s *coordinationv1.DeploymentState) {
				s.ReadyReplicas = 9
			}),
		},
		"a new template": {
			now: noon, past: state("a", "t1", started(ago(time.Minute)), finished(ago(time.Second))),
			member: but(deployment("a", "web"), rolling(1)),
			want: state("a", "t2", finished(ago(time.Second)), started(ago(0)), func(s *coordinationv1.DeploymentState) {
				s.ReadySince = nil
			}),
		},
		"a turn with a template that was ready once": {
			now: noon, past: state("b", "t1", started(ago(time.Minute)), finished(ago(time.Second))),
			member: but(deployment("b", "web"), idle, func(d *deployments.Deployment) { d.OthersUp = true }),
			want: state("b", "t1", finished(ago(time.Second)), started(ago(0)), func(s *coordinationv1.DeploymentState) {
				s.ReadySince = nil
			}),
		},
		"paused, it is not finished": {
			now: noon, past: state("a", "t1", started(ago(time.Minute))), member: but(deployment("a", "web"), idle),
			want: state("a", "t1", started(ago(time.Minute))),
		},
		"an entry of a controller that kept no identities": {
			now: noon, past: state("a", "", started(ago(time.Minute)), func(s *coordinationv1.DeploymentState) { s.UID = "" }),
			member: but(deployment("a", "web"), rolling(1)),
			want:   state("a", "t2", started(ago(0))),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			active := "a"
			if tt.past.Name != "shop/a" {
				active = "" // it gets the turn now
			}
			in := of(coordination("web", seconds(3600), wrote(active, tt.past)), tt.member)
			in.Now = tt.now
			got := entryOf(t, deployments.Decide(in), "web", strings.TrimPrefix(tt.past.Name, "shop/"))
			if !sameEntry(got, tt.want) {
				t.Errorf("the entry is\n  %+v\nwant\n  %+v", got, tt.want)
			}
		})
	}
}

func sameEntry(a, b coordinationv1.DeploymentState) bool {
	return a.HasPendingChanges == b.HasPendingChanges && a.Template == b.Template && a.UID == b.UID && a.ReadyReplicas == b.ReadyReplicas &&
		a.LastRolloutStarted.Equal(b.LastRolloutStarted) && a.LastRolloutFinished.Equal(b.LastRolloutFinished) && a.ReadySince.Equal(b.ReadySince)
}

func TestTimesAreNotInheritedByAnother(t *testing.T) {
	t.Parallel()

	in := of(coordination("web", wrote("", longDone("a"))), but(deployment("a", "web"), idle, func(d *deployments.Deployment) { d.UID = "another" }))
	got := entryOf(t, deployments.Decide(in), "web", "a")
	if got.LastRolloutStarted != nil || got.LastRolloutFinished != nil || got.ReadySince != nil || got.UID != "another" {
		t.Errorf("the entry is %+v", got)
	}
}

// TestPartialJournals merges the entries of several journals about one rollout.
func TestPartialJournals(t *testing.T) {
	t.Parallel()

	begun := state("b", "t1", started(ago(time.Minute)))
	done := state("b", "t1", started(ago(time.Minute)), finished(ago(10*time.Second)))
	earlier := state("b", "t0", started(ago(time.Hour)), finished(ago(50*time.Minute)))
	tests := map[string]struct {
		east, west coordinationv1.DeploymentState
		member     deployments.Deployment
		want       coordinationv1.DeploymentState
	}{
		"one has the end and the other has not: ready from now": {
			east: done, west: begun, member: deployment("b", "east", "west"),
			want: state("b", "t1", started(ago(time.Minute)), finished(ago(10*time.Second)), func(s *coordinationv1.DeploymentState) {
				s.ReadySince = ago(0)
			}),
		},
		"both have it: the later": {
			east: done, west: state("b", "t1", started(ago(time.Minute)), finished(ago(8*time.Second))), member: deployment("b", "east", "west"),
			want: state("b", "t1", started(ago(time.Minute)), finished(ago(8*time.Second))),
		},
		"an earlier turn does not count": {
			east: earlier, west: done, member: deployment("b", "east", "west"), want: done,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, swap := range []bool{false, true} {
				one, other := tt.east, tt.west
				if swap {
					one, other = other, one
				}
				in := of(coordination("east", seconds(60), wrote("b", one)), coordination("west", wrote("b", other)), tt.member)
				p := deployments.Decide(in)
				for _, name := range []string{"east", "west"} {
					if got := entryOf(t, p, name, "b"); !sameEntry(got, tt.want) {
						t.Errorf("the entry of %s is\n  %+v\nwant\n  %+v", name, got, tt.want)
					}
				}
			}
		})
	}
}

func TestNothingIsTouched(t *testing.T) {
	t.Parallel()

	empty := func(c *deployments.Coordination) { c.Spec.LabelSelector = metav1.LabelSelector{} }
	invalid := func(c *deployments.Coordination) {
		c.Spec.LabelSelector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "web", Operator: "Like"}}}
	}
	held := but(deployment("a", "web"), waiting)
	tests := map[string]struct {
		in   deployments.Input
		want []string
	}{
		"by an empty selector": {
			in:   of(coordination("web", empty), deployment("a", "web")),
			want: []string{"web: nobody, EmptySelector"},
		},
		"by a selector that cannot be understood": {
			in:   of(coordination("web", invalid), deployment("a", "web")),
			want: []string{"web: nobody, InvalidSelector"},
		},
		"and what such a coordination held stays as it is, and so does the turn": {
			in:   of(coordination("web", invalid, wrote("b", justStarted("b"))), held, but(deployment("b", "web"), rolling(1))),
			want: []string{"web: b, InvalidSelector"},
		},
		"and the others go on": {
			in:   of(coordination("bad", empty), coordination("web"), held),
			want: []string{"bad: nobody, EmptySelector", "web: a, DeploymentsInProgress", "Unpause a"},
		},
		"next to another coordinator": {
			in: func() deployments.Input {
				in := of(coordination("web", wrote("a", justStarted("a"))), held, but(deployment("b"), idle, func(d *deployments.Deployment) { d.HeldBy = "gone" }))
				in.Other = "another coordinator is installed"
				return in
			}(),
			want: []string{"web: a, OtherCoordinatorInstalled"},
		},
		"while something cannot be read": {
			in: func() deployments.Input {
				in := of(coordination("web", wrote("a", justStarted("a"))), held)
				in.Unreadable = errors.New("replicasets is forbidden")
				return in
			}(),
			want: []string{"web: a, Error"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, tt.in, tt.want...)
		})
	}
}

// misspelt makes the selector one that cannot be understood.
func misspelt(c *deployments.Coordination) {
	c.Spec.LabelSelector = metav1.LabelSelector{MatchLabels: map[string]string{"web": "a b"}}
}

func TestMistakenSelectorGivesNoTurn(t *testing.T) {
	t.Parallel()

	// web had a and b. y selects b and c.
	had := func(active string, states ...coordinationv1.DeploymentState) deployments.Coordination {
		return coordination("web", misspelt, wrote(active, states...))
	}
	y := coordination("y", wrote("", longDone("b"), longDone("c")))
	tests := map[string]struct {
		in   deployments.Input
		want []string
	}{
		"while its Deployment rolls out, nobody else begins": {
			in: of(had("a", justStarted("a"), longDone("b")), y,
				but(deployment("a", "web"), rolling(1)), but(deployment("b", "web", "y"), waiting), but(deployment("c", "y"), waiting)),
			want: []string{"web: a, InvalidSelector", "y: nobody, WaitingForCoordination"},
		},
		"the one that has the turn is unpaused": {
			in: of(had("a", justStarted("a"), longDone("b")), y,
				but(deployment("a", "web"), waiting), but(deployment("b", "web", "y"), waiting)),
			want: []string{"web: a, InvalidSelector", "y: nobody, WaitingForCoordination", "Unpause a"},
		},
		"once it is rolled out, its turn ends": {
			in: of(had("a", justStarted("a"), longDone("b")), y,
				but(deployment("a", "web"), rolling(3), rolled), but(deployment("b", "web", "y"), waiting), but(deployment("c", "y"), idle)),
			want: []string{"web: nobody, InvalidSelector", "y: nobody, WaitingForCoordination"},
		},
		"a Deployment that it did not have begins": {
			in: of(had("", longDone("a"), longDone("b")), y,
				but(deployment("a", "web"), idle), but(deployment("b", "web", "y"), waiting), but(deployment("c", "y"), waiting)),
			want: []string{"web: nobody, InvalidSelector", "y: c, DeploymentsInProgress", "Unpause c"},
		},
		"its own wait": {
			in:   of(had("", longDone("a")), but(deployment("a", "web"), waiting)),
			want: []string{"web: nobody, InvalidSelector"},
		},
		"of those that roll out already, one goes on": {
			in:   of(had("", longDone("a"), longDone("b")), but(deployment("a", "web"), rolling(1)), but(deployment("b", "web"), rolling(2))),
			want: []string{"web: b, InvalidSelector", "Pause a"},
		},
		"idle ones stay as they are": {
			in: of(had("", longDone("a"), longDone("b")), coordination("y", resume, misspelt, wrote("", longDone("c"))),
				deployment("a", "web"), but(deployment("b", "web"), idle), but(deployment("c", "y"), idle)),
			want: []string{"web: nobody, InvalidSelector", "y: nobody, InvalidSelector"},
		},
		"one that was created a moment before waits": {
			in:   of(had(""), but(deployment("a"), waiting, func(d *deployments.Deployment) { d.HeldBy = "web" })),
			want: []string{"web: nobody, InvalidSelector"},
		},
		"what it never had is not touched": {
			in:   of(had("", longDone("a")), but(deployment("b", "web"), rolling(1))),
			want: []string{"web: nobody, InvalidSelector"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, tt.in, tt.want...)
		})
	}
}

func TestMistakenSelectorIsNamedByThoseThatWait(t *testing.T) {
	t.Parallel()

	p := deployments.Decide(of(coordination("web", misspelt, wrote("", longDone("a"))), coordination("y"), but(deployment("a", "web", "y"), waiting)))
	want := "0 of 1 Deployments are rolled out; waits for coordination web, which gives no turn until its selector is corrected"
	if got := ready(journalOf(t, p, "y").Status).Message; got != want {
		t.Errorf("the message is %q, want %q", got, want)
	}
}

func TestUnpausingThoseThatLeave(t *testing.T) {
	t.Parallel()

	gone := func(d *deployments.Deployment) { idle(d); d.HeldBy = "gone" }
	mistaken := func(c *deployments.Coordination) { c.Spec.LabelSelector = metav1.LabelSelector{} }
	selected := func(name string) func(*deployments.Coordination) { return wrote("", longDone(name)) }
	tests := map[string]struct {
		in   deployments.Input
		want []deployments.Write
	}{
		"what nobody selects is released": {
			in:   of(but(deployment("a"), gone)),
			want: []deployments.Write{{Kind: deployments.WriteRestore, Deployment: "shop/a", UID: "uid-a"}},
		},
		"what people hold stays paused": {
			in:   of(but(deployment("a"), gone, userHeld)),
			want: []deployments.Write{{Kind: deployments.WriteRestore, Deployment: "shop/a", UID: "uid-a", Paused: true}},
		},
		"what people have released in the meantime stays released": {
			in:   of(but(deployment("a"), gone, userHeld, func(d *deployments.Deployment) { d.Paused = false })),
			want: []deployments.Write{{Kind: deployments.WriteRestore, Deployment: "shop/a", UID: "uid-a"}},
		},
		"what others have paused stays paused": {
			in: of(but(deployment("a"), func(d *deployments.Deployment) { d.Paused = true })),
		},
		"what a coordination held whose selector is a mistake now stays held": {
			in: of(coordination("gone", mistaken), but(deployment("a"), gone)),
		},
		"what such a coordination selected stays held, whoever held it": {
			in:   of(coordination("web", mistaken, selected("a")), but(deployment("a"), gone)),
			want: []deployments.Write{{Kind: deployments.WriteMark, Deployment: "shop/a", UID: "uid-a", HeldBy: "web", Paused: true}},
		},
		"what the first implementation paused under such a selector is marked": {
			in:   of(coordination("web", mistaken, selected("a"), selected("b")), but(deployment("b"), func(d *deployments.Deployment) { d.Paused = true })),
			want: []deployments.Write{{Kind: deployments.WriteMark, Deployment: "shop/b", UID: "uid-b", HeldBy: "web", Paused: true}},
		},
		"what it left running is not": {
			in: of(coordination("web", mistaken, selected("a")), deployment("a")),
		},
		"another of its name is unpaused": {
			in:   of(coordination("web", mistaken, selected("a")), but(deployment("a"), gone, func(d *deployments.Deployment) { d.UID = "another" })),
			want: []deployments.Write{{Kind: deployments.WriteRestore, Deployment: "shop/a", UID: "another"}},
		},
		"next to a mistake in another coordination": {
			in:   of(coordination("web", mistaken, selected("b")), but(deployment("a"), gone)),
			want: []deployments.Write{{Kind: deployments.WriteRestore, Deployment: "shop/a", UID: "uid-a"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := deployments.Decide(tt.in).Writes; !slices.EqualFunc(got, tt.want, sameWrite) {
				t.Errorf("the writes are %+v, want %+v", got, tt.want)
			}
		})
	}
}

func sameWrite(a, b deployments.Write) bool {
	return a.Kind == b.Kind && a.Deployment == b.Deployment && a.UID == b.UID && a.HeldBy == b.HeldBy && a.Paused == b.Paused
}

func TestMarks(t *testing.T) {
	t.Parallel()

	heldBy := func(name string) func(*deployments.Deployment) {
		return func(d *deployments.Deployment) { d.HeldBy = name }
	}
	member := but(deployment("a", "east", "west"), idle)
	tests := map[string]struct {
		member deployments.Deployment
		want   []deployments.Write
	}{
		"one that arrives paused": {
			member: but(member, heldBy("")),
			want:   []deployments.Write{{Kind: deployments.WriteMark, Deployment: "shop/a", UID: "uid-a", HeldBy: "east", Paused: true}},
		},
		"one whose coordination is gone while another selects it": {
			member: but(member, heldBy("gone")),
			want:   []deployments.Write{{Kind: deployments.WriteMark, Deployment: "shop/a", UID: "uid-a", HeldBy: "east", Paused: true}},
		},
		"one that is held by any that selects it": {member: but(member, heldBy("west"))},
		"one that people hold": {
			member: but(member, heldBy(""), userHeld),
			want:   []deployments.Write{{Kind: deployments.WriteMark, Deployment: "shop/a", UID: "uid-a", HeldBy: "east", Paused: true}},
		},
		"one that is paused anew": {
			member: but(deployment("a", "east", "west"), heldBy("west")),
			want:   []deployments.Write{{Kind: deployments.WritePause, Deployment: "shop/a", UID: "uid-a", HeldBy: "west", Paused: true}},
		},
		"one that somebody else has released, half-way": {
			member: but(deployment("a", "east", "west"), rolling(1), heldBy("west")),
			want:   []deployments.Write{{Kind: deployments.WriteMark, Deployment: "shop/a", UID: "uid-a"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := deployments.Decide(of(coordination("east"), coordination("west"), tt.member)).Writes
			if !slices.EqualFunc(got, tt.want, sameWrite) {
				t.Errorf("the writes are %+v, want %+v", got, tt.want)
			}
		})
	}
}
