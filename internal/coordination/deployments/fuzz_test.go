// SPDX-License-Identifier: Apache-2.0

package deployments_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
)

// dice returns numbers from fuzzed bytes, and zeros at their end.
type dice []byte

func (d *dice) roll(sides int) int {
	if len(*d) == 0 {
		return 0
	}
	n := int((*d)[0]) % sides
	*d = (*d)[1:]
	return n
}

func (d *dice) yes() bool { return d.roll(2) == 1 }

func (d *dice) time() *metav1.Time {
	if !d.yes() {
		return nil
	}
	return ago(time.Duration(d.roll(200)-20) * time.Second)
}

func (d *dice) deployment(name string) deployments.Deployment {
	a := but(deployment(name), func(a *deployments.Deployment) {
		for _, group := range groups {
			if d.yes() {
				a.Labels[group] = "yes"
			}
		}
		a.UID = types.UID(fmt.Sprint("uid-", d.roll(3)))
		a.Generation, a.ObservedGeneration = int64(d.roll(3)), int64(d.roll(3))
		a.Paused, a.UserPaused, a.Unfinished = d.yes(), d.yes(), d.yes()
		a.HeldBy = []string{"", "gone", "east", "west"}[d.roll(4)]
		a.PausedBy = []string{"", "kubectl-rollout", "kustomize-controller"}[d.roll(3)]
		a.AppliedBy = []string{"", "Kustomization flux-system/shop"}[d.roll(2)]
		a.Order = []string{"", "-1", "2", "x"}[d.roll(4)]
		a.Template, a.TemplateHasSet, a.OthersUp = fmt.Sprint("t", d.roll(3)), d.yes(), d.yes()
		a.Replicas, a.UpdatedReplicas, a.AvailableReplicas = int32(d.roll(3)), int32(d.roll(3)), int32(d.roll(3))
		a.Available, a.RolledOut = d.yes(), d.yes() && !a.Paused
		a.WriteError = []string{"", "no"}[d.roll(2)]
		a.ProgressDeadline = time.Duration(d.roll(90)) * time.Second
		if failed := d.time(); failed != nil {
			a.Failure = &deployments.Failure{Message: "gave up", At: failed.Time}
		}
	})
	return a
}

func (d *dice) coordination(name string) deployments.Coordination {
	return coordination(name, func(c *deployments.Coordination) {
		c.Spec.MinReadySeconds = int32(d.roll(200)) - 20
		c.Spec.IdlePolicy = []coordinationv1.IdlePolicy{"", coordinationv1.IdlePause, coordinationv1.IdleResume}[d.roll(3)]
		switch d.roll(8) {
		case 1:
			c.Spec.LabelSelector = metav1.LabelSelector{}
		case 2:
			c.Spec.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "east", Operator: "Like"}}
		}
		if d.yes() {
			wrote([]string{"", "d0", "d1", "d2", "d3", "another"}[d.roll(6)])(c)
		}
		for i := range d.roll(5) {
			s := state(fmt.Sprint("d", i), fmt.Sprint("t", d.roll(3)))
			s.UID = types.UID([]string{"", "uid-0", "uid-1"}[d.roll(3)])
			s.HasPendingChanges, s.LastRolloutStarted, s.LastRolloutFinished, s.ReadySince = d.yes(), d.time(), d.time(), d.time()
			s.ReadyTemplates = []string{"t2", "t0"}[:i%3]
			c.Journal.DeploymentStates = append(c.Journal.DeploymentStates, s)
		}
	})
}

// concurrent may set maxConcurrent and a journal of several turns. It is called last, so
// that older inputs keep their meaning.
func (d *dice) concurrent(c *deployments.Coordination) {
	if d.yes() {
		atATime([]string{"1", "2", "3", "-1", "50%", "100%", "many"}[d.roll(7)])(c)
	}
	for i := range d.roll(5) {
		if d.yes() {
			c.Journal.ActiveDeployments = append(c.Journal.ActiveDeployments, fmt.Sprint("shop/d", i))
		}
	}
	if len(c.Journal.ActiveDeployments) > 0 && c.Journal.ActiveDeployment == "" {
		c.Journal.ActiveDeployment = c.Journal.ActiveDeployments[0]
	}
}

// FuzzDecide verifies for any stored objects that the planner does not panic, gives no
// more turns in each component than may roll out at a time, writes once to each Deployment, never unpauses a Deployment
// that a user has paused by annotation, and keeps its decision once that is stored.
func FuzzDecide(f *testing.F) {
	for seed := range byte(24) {
		some := make([]byte, 40+4*int(seed))
		for i := range some {
			some[i] = byte(i*i)*seed + byte(i)*7 + seed
		}
		f.Add(some)
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		d := dice(bytes)
		var in deployments.Input
		in.Now, in.HoldMode = noon, deployments.AdmissionMode{Reason: coordinationv1.ControllerOnlyReason, Message: "only the controller"}
		for _, name := range groups[:d.roll(4)] {
			in.Coordinations = append(in.Coordinations, d.coordination(name))
		}
		for i := range d.roll(5) {
			in.Deployments = append(in.Deployments, d.deployment(fmt.Sprint("d", i)))
		}
		for i := range in.Coordinations {
			d.concurrent(&in.Coordinations[i])
		}
		p := deployments.Decide(in)
		checkPlan(t, in, p)

		second := deployments.Decide(stored(in, p))
		if second.Begins {
			t.Errorf("it changes its mind: %v, and then %v", summary(p), summary(second))
		}
		third := deployments.Decide(stored(in, second))
		for i := range third.Journals {
			if !reflect.DeepEqual(third.Journals[i].Status, second.Journals[i].Status) {
				t.Errorf("there is no end to what is written:\n%+v\n%+v", second.Journals[i].Status, third.Journals[i].Status)
			}
		}
	})
}

// stored returns the input after the journals of a plan are stored.
func stored(in deployments.Input, p deployments.Plan) deployments.Input {
	in.Coordinations = slices.Clone(in.Coordinations)
	for i := range in.Coordinations {
		for _, j := range p.Journals {
			if j.Coordination == in.Coordinations[i].Name {
				in.Coordinations[i].Journal = j.Status
			}
		}
	}
	return in
}

func checkPlan(t *testing.T, in deployments.Input, p deployments.Plan) {
	t.Helper()
	byKey := map[string]deployments.Deployment{}
	for _, d := range in.Deployments {
		byKey[d.Key] = d
	}
	seen := map[string]bool{}
	for _, w := range p.Writes {
		d := byKey[w.Deployment]
		switch {
		case d.UID != w.UID || seen[w.Deployment]:
			t.Errorf("%s is written twice, or is another", w.Deployment)
		case d.UserPaused && d.Paused && !w.Paused:
			t.Errorf("%s is unpaused, and a user has paused it", w.Deployment)
		case w.Paused == d.Paused && w.HeldBy == d.HeldBy:
			t.Errorf("the write to %s changes nothing", w.Deployment)
		}
		if w.Kind == deployments.WriteRestore && slices.ContainsFunc(in.Coordinations, func(co deployments.Coordination) bool {
			return co.Name == d.HeldBy && isMistake(co)
		}) {
			t.Errorf("%s is unpaused because of a mistake", w.Deployment)
		}
		seen[w.Deployment] = true
	}
	if !p.RecheckAt.IsZero() && !p.RecheckAt.After(in.Now) {
		t.Errorf("it wants to look again at %s, which is over", p.RecheckAt)
	}
	active := map[string][]string{}
	for _, j := range p.Journals {
		active[j.Coordination] = j.Status.Active()
	}
	if wrong := wrongTurns(view{in: in}, active); wrong != "" {
		t.Error(wrong)
	}
}
