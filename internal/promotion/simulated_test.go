// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/simulation"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

// notModelled are the scenarios in which something happens that a simulation does not
// claim to know. They are simulated only from the step after it on.
var notModelled = map[string]string{
	"a lost history is adopted": "a user restores the Rollout from a backup without its status",
}

// assumed are the scenarios whose end depends on what people say: a simulation assumes that, and
// so does a remedy.
var assumed = map[string]bool{"two people approve and a rollback asks nobody": true}

// A simulation that starts at any step of a scenario, and is given what happens in its
// world from then on, ends with the history of the scenario: the same releases, ids,
// outcomes, messages and times.
func TestSimulationEndsWithTheHistoryOfTheScenario(t *testing.T) {
	for name, scenario := range scenarios {
		if assumed[name] {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := record(t, scenario)
			if why := notModelled[name]; (why != "") != (r.first > 0) {
				t.Errorf("step %d is the first one that can be simulated; the reason is %q", r.first+1, why)
			}
			for step := r.first; step < len(r.starts); step++ {
				r.simulate(t, step)
			}
		})
	}
}

// endless is longer than any scenario: Flux and the writers of HealthChecks do what the
// events say, and nothing else.
const endless = 10 * 365 * 24 * time.Hour

// recording is what happened in the world of a scenario.
type recording struct {
	w      *world
	starts []promotion.Input
	// first is the index of the first start after which only what a simulation knows happens.
	first  int
	events []simulation.Event
	before facts
}

// facts are the parts of the world that the controller does not write, as they were.
type facts struct {
	policy  releases.Policy
	rollout *v1alpha1.Rollout
	gates   []v1alpha1.RolloutGate
	checks  []v1alpha1.HealthCheck
	targets content.Targets
}

func record(t *testing.T, s scenario) *recording {
	t.Helper()
	w, people, done := s.begin(t, nil)
	r := &recording{w: w}
	w.watched = r.note
	w.runUntil(1000, func() {
		r.starts, r.before = append(r.starts, w.gather()), r.facts()
		people()
	}, done)
	return r
}

func (r *recording) facts() facts {
	in := r.w.gather()
	return facts{in.Policy, in.Rollout, in.Gates.Gates, in.Health.Checks, in.Targets}
}

// note makes events of what has changed since the step began.
func (r *recording) note() {
	before, now := r.before, r.facts()
	if before.rollout.Current() != nil && now.rollout.Current() == nil {
		r.first = len(r.starts)
	}
	event := func(changed bool, change func(*promotion.Input)) {
		if changed {
			r.events = append(r.events, simulation.Event{At: r.w.now, Change: change})
		}
	}
	offers := func(p releases.Policy) any { return []any{p.Latest, p.Scanned, p.Complete} }
	event(!reflect.DeepEqual(offers(before.policy), offers(now.policy)), func(in *promotion.Input) { in.Policy = now.policy })
	event(!reflect.DeepEqual(before.gates, now.gates), func(in *promotion.Input) { in.Gates.Gates = now.gates })
	event(!reflect.DeepEqual(before.rollout.Spec, now.rollout.Spec), func(in *promotion.Input) { in.Rollout.Spec = *now.rollout.Spec.DeepCopy() })
	for key, value := range now.rollout.Annotations {
		event(before.rollout.Annotations[key] != value, func(in *promotion.Input) { metav1.SetMetaDataAnnotation(&in.Rollout.ObjectMeta, key, value) })
	}
	for i := range now.checks {
		event(!reflect.DeepEqual(before.checks[i].Status, now.checks[i].Status), func(in *promotion.Input) {
			in.Health.Checks[i].Status = *now.checks[i].Status.DeepCopy()
		})
	}
	for i := range now.targets.All {
		event(!reflect.DeepEqual(before.targets.All[i], now.targets.All[i]), func(in *promotion.Input) { in.Targets.All[i] = now.targets.All[i] })
	}
}

func (r *recording) simulate(t *testing.T, step int) {
	t.Helper()
	start := r.starts[step]
	later := slices.DeleteFunc(slices.Clone(r.events), func(e simulation.Event) bool { return e.At.Before(start.Now) })
	result, err := simulation.Run(start, simulation.Assumptions{
		Applies: endless, Reports: endless, Events: later, Until: r.w.now,
		Schedules: func(now time.Time) []promotion.Window { return windowsAt(r.w.schedules, now) },
	})
	if err != nil {
		t.Fatalf("from step %d on: %v", step+1, err)
	}
	if d := cmp.Diff(r.w.rollout.Status.History, result.Rollout.Status.History); d != "" {
		t.Errorf("from step %d on, the history is (-scenario +simulation):\n%s", step+1, d)
	}
}
