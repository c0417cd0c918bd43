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

// alsoWrote adds members that have a turn to the journal that [wrote] made.
func alsoWrote(active ...string) func(*deployments.Coordination) {
	return func(c *deployments.Coordination) {
		c.Journal.ActiveDeployments = []string{c.Journal.ActiveDeployment}
		for _, name := range active {
			c.Journal.ActiveDeployments = append(c.Journal.ActiveDeployments, "shop/"+name)
		}
	}
}

// fourWait returns four Deployments that wait for coordination web.
func fourWait(c deployments.Coordination) deployments.Input {
	return of(c, but(deployment("a", "web"), waiting), but(deployment("b", "web"), waiting),
		but(deployment("c", "web"), waiting), but(deployment("d", "web"), waiting))
}

func TestMaxConcurrent(t *testing.T) {
	t.Parallel()

	one := []string{"web: a, DeploymentsInProgress", "Unpause a"}
	two := []string{"web: a and b, DeploymentsInProgress", "Unpause a", "Unpause b"}
	tests := map[string][]string{
		"1": one, "2": two, "50%": two, "74%": two, "25%": one, "1%": one,
		"100%": {"web: a and b and c and d, DeploymentsInProgress", "Unpause a", "Unpause b", "Unpause c", "Unpause d"},
		"0":    one, "-3": one, "many": one,
	}
	for most, want := range tests {
		t.Run(most, func(t *testing.T) {
			t.Parallel()
			check(t, fourWait(coordination("web", resume, atATime(most))), want...)
		})
	}
}

func TestSeveralTurns(t *testing.T) {
	t.Parallel()

	order := func(n string) func(*deployments.Deployment) {
		return func(d *deployments.Deployment) { d.Order = n }
	}
	failure := func(d *deployments.Deployment) {
		rolling(1)(d)
		d.Failure = &deployments.Failure{Message: "timed out", At: noon}
	}
	atMost2 := func(change ...func(*deployments.Coordination)) deployments.Coordination {
		return coordination("web", append(change, resume, seconds(60), atATime("2"))...)
	}
	baking := state("a", "t1", started(ago(time.Minute)), finished(ago(time.Second)))
	baked := state("a", "t1", started(ago(2*time.Minute)), finished(ago(time.Minute)))
	tests := map[string]struct {
		in   deployments.Input
		want []string
	}{
		"a free turn goes to the next, and the others stay": {
			in: of(atMost2(wrote("b", justStarted("b"))), but(deployment("a", "web"), waiting),
				but(deployment("b", "web"), rolling(1)), but(deployment("c", "web"), waiting)),
			want: []string{"web: a and b, DeploymentsInProgress", "Unpause a"},
		},
		"one that bakes has a turn": {
			in: of(atMost2(wrote("a", baking, justStarted("b")), alsoWrote("b")), deployment("a", "web"),
				but(deployment("b", "web"), rolling(1)), but(deployment("c", "web"), waiting)),
			want: []string{"web: a and b, DeploymentsInProgress"},
		},
		"each bake ends for itself": {
			in: of(atMost2(wrote("a", baked, justStarted("b")), alsoWrote("b")), deployment("a", "web"),
				but(deployment("b", "web"), rolling(1)), but(deployment("c", "web"), waiting)),
			want: []string{"web: b and c, DeploymentsInProgress", "Unpause c"},
		},
		"a new template while it bakes waits for another turn": {
			in: of(atMost2(wrote("a", baking, justStarted("b")), alsoWrote("b")), but(deployment("a", "web"), waiting),
				but(deployment("b", "web"), rolling(1)), but(deployment("c", "web"), waiting)),
			want: []string{"web: b and c, DeploymentsInProgress", "Unpause c"},
		},
		"a failure gives no turn to others": {
			in:   of(atMost2(wrote("a", justStarted("a"))), but(deployment("a", "web"), failure), but(deployment("b", "web"), waiting)),
			want: []string{"web: a, RolloutFailed"},
		},
		"a failure lets others end theirs": {
			in: of(atMost2(wrote("a", justStarted("a"), justStarted("b")), alsoWrote("b")), but(deployment("a", "web"), failure),
				but(deployment("b", "web"), rolling(1)), but(deployment("c", "web"), waiting)),
			want: []string{"web: a and b, RolloutFailed"},
		},
		"one that a user holds gives no turn to others": {
			in:   of(atMost2(wrote("a", justStarted("a"))), but(deployment("a", "web"), rolling(1), userHeld), but(deployment("b", "web"), waiting)),
			want: []string{"web: a, ActiveDeploymentHeld", "Pause a"},
		},
		"of several that roll out already the furthest go on": {
			in: of(atMost2(), but(deployment("a", "web"), rolling(0)), but(deployment("b", "web"), rolling(2)),
				but(deployment("c", "web"), rolling(1)), but(deployment("d", "web"), waiting)),
			want: []string{"web: b and c, DeploymentsInProgress", "Pause a"},
		},
		"fewer are allowed now: those that are rolled out keep their turns": {
			in: of(atMost2(wrote("a", justStarted("a"), justStarted("b"), state("c", "t1", started(ago(time.Minute)))), alsoWrote("b", "c")),
				but(deployment("a", "web"), rolling(1)), but(deployment("b", "web"), rolling(2)), deployment("c", "web")),
			want: []string{"web: b and c, DeploymentsInProgress", "Pause a"},
		},
		"the order counts": {
			in: of(atMost2(), but(deployment("a", "web"), waiting, order("1")), but(deployment("b", "web"), waiting),
				but(deployment("c", "web"), waiting, order("-1"))),
			want: []string{"web: b and c, DeploymentsInProgress", "Unpause b", "Unpause c"},
		},
		"one of the active ones is gone": {
			in: of(atMost2(wrote("a", justStarted("a"), justStarted("b")), alsoWrote("b")), but(deployment("a", "web"), rolling(1)),
				but(deployment("c", "web"), waiting)),
			want: []string{"web: a and c, DeploymentsInProgress", "Unpause c"},
		},
		"a list that another implementation did not update does not count": {
			in: of(atMost2(wrote("c", justStarted("c")), func(c *deployments.Coordination) {
				c.Journal.ActiveDeployments = []string{"shop/a", "shop/b"}
			}), but(deployment("a", "web"), waiting, order("3")), but(deployment("b", "web"), waiting),
				but(deployment("c", "web"), rolling(1))),
			want: []string{"web: b and c, DeploymentsInProgress", "Unpause b"},
		},
		"coordinations that share a Deployment have as many as the strictest allows": {
			in: of(coordination("east", resume, atATime("3")), coordination("west", resume, atATime("2")),
				but(deployment("a", "east"), waiting), but(deployment("b", "east", "west"), waiting), but(deployment("c", "west"), waiting)),
			want: []string{"east: a and b, DeploymentsInProgress", "west: b, DeploymentsInProgress", "Unpause a", "Unpause b"},
		},
		"and one if one of them says nothing": {
			in: of(coordination("east", resume, atATime("3")), coordination("west", resume),
				but(deployment("a", "east"), waiting), but(deployment("b", "east", "west"), waiting), but(deployment("c", "west"), waiting)),
			want: []string{"east: a, DeploymentsInProgress", "west: nobody, WaitingForCoordination", "Unpause a"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := check(t, tt.in, tt.want...)
			if again := deployments.Decide(stored(tt.in, p)); again.Begins {
				t.Errorf("it changes its mind, to %s", strings.Join(summary(again), ", "))
			}
		})
	}
}

func TestMessagesAboutSeveralTurns(t *testing.T) {
	t.Parallel()

	failure := func(d *deployments.Deployment) {
		rolling(1)(d)
		d.Failure = &deployments.Failure{Message: "it timed out.", At: noon}
	}
	names := strings.Fields("a b c d e f g")
	all := func(n int, change func(*deployments.Deployment)) deployments.Input {
		var entries []coordinationv1.DeploymentState
		in := of()
		for _, name := range names[:n] {
			entries = append(entries, justStarted(name))
			in.Deployments = append(in.Deployments, but(deployment(name, "web"), change))
		}
		in.Coordinations = append(in.Coordinations, coordination("web", resume, atATime("100%"), wrote("a", entries...), alsoWrote(names[1:n]...)))
		return in
	}
	tests := map[string]struct {
		in   deployments.Input
		want string
	}{
		"two roll out": {all(2, rolling(1)),
			"0 of 2 Deployments are rolled out; shop/a rolls out: 1 of 3 replicas are updated; shop/b rolls out: 1 of 3 replicas are updated"},
		"many roll out": {all(7, rolling(0)), "0 of 7 Deployments are rolled out; shop/a rolls out: 0 of 3 replicas are updated; " +
			"shop/b rolls out: 0 of 3 replicas are updated; shop/c rolls out: 0 of 3 replicas are updated; " +
			"shop/d rolls out: 0 of 3 replicas are updated; shop/e rolls out: 0 of 3 replicas are updated; and 2 more are active"},
		"three have failed": {all(3, failure), "shop/a has failed to roll out: it timed out; correct or revert its template, " +
			"or take it out of the selection; so have shop/b, shop/c"},
		"two are held": {all(2, func(d *deployments.Deployment) { rolling(1)(d); userHeld(d) }),
			"0 of 2 Deployments are rolled out; shop/a is active, and the annotation apps.containerinfra.nl/rollout-paused keeps it paused"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := ready(journalOf(t, deployments.Decide(tt.in), "web").Status).Message; got != tt.want {
				t.Errorf("the message is\n  %s\nwant\n  %s", got, tt.want)
			}
		})
	}
}

func TestEventsAboutSeveralTurns(t *testing.T) {
	t.Parallel()

	baked := func(name string) coordinationv1.DeploymentState {
		return state(name, "t1", started(ago(2*time.Minute)), finished(ago(time.Minute)))
	}
	tests := map[string]struct {
		in   deployments.Input
		want []string
	}{
		"two turns end, and one waits": {
			in: of(coordination("web", resume, atATime("2"), wrote("a", baked("a"), baked("b")), alsoWrote("b")),
				deployment("a", "web"), deployment("b", "web"), but(deployment("c", "web"), waiting)),
			want: []string{
				"shop/a is rolled out", "shop/b is rolled out", "the turn goes from shop/a to shop/c",
				"the turn of shop/b is over, and no Deployment waits for the next", "shop/c is active: its turn has come",
			},
		},
		"a turn ends while another one is stopped": {
			in: of(coordination("web", resume, atATime("2"), wrote("a", baked("a"), justStarted("b")), alsoWrote("b")),
				deployment("a", "web"), but(deployment("b", "web"), rolling(1), userHeld), but(deployment("c", "web"), waiting)),
			want: []string{"shop/a is rolled out", "the turn of shop/a is over, and no Deployment gets the next: shop/b is held by annotation"},
		},
		"fewer are allowed now": {
			in: of(coordination("web", resume, wrote("a", justStarted("a"), justStarted("b")), alsoWrote("b")),
				but(deployment("a", "web"), rolling(1)), but(deployment("b", "web"), rolling(2))),
			want: []string{"the turn of shop/a is over, and no Deployment gets the next while shop/b is active"},
		},
		"the turn goes to one that is not selected here": {
			in: of(coordination("east", resume, atATime("2"), wrote("a", baked("a"), justStarted("b")), alsoWrote("b")),
				coordination("west", resume, atATime("2"), wrote("b", justStarted("b"))), deployment("a", "east"),
				but(deployment("b", "east", "west"), rolling(1)), but(deployment("c", "west"), waiting)),
			want: []string{"shop/a is rolled out", "the turn goes from shop/a to shop/c, which is not selected here"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, note := range deployments.Decide(tt.in).Journals[0].Notes {
				got = append(got, note.Message)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("the events are\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(tt.want, "\n  "))
			}
		})
	}
}
