// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

var (
	update   = flag.Bool("update", false, "write the golden files again")
	onlySeed = flag.Uint64("seed", 0, "simulate with this seed instead of fresh ones")
	more     = flag.Int("seeds", 1, "simulate with this many times as many fresh seeds")
)

// These numbers are how often a simulation runs with a random seed: each scenario, whose
// events are fixed, and the chaos run, in which anything may happen. They are small, so that
// the package is tested within seconds. make test-long runs ten times as many.
const (
	freshSeedsOfAScenario = 2
	freshSeedsOfChaos     = 8
)

// The real engine runs while mutators play everyone else. Every scenario runs in fixed
// order, and its events are compared with the golden file of its name. It also runs with
// seed 0 and with fresh seeds: then everyone acts in any order and takes any time.
// Invariants are checked after every step, and each run must end as the scenario says. To
// write the golden files again, and to look into a seed that failed:
//
//	go test ./internal/promotion -run TestScenarios -update
//	go test ./internal/promotion -run TestScenarios -seed 6845808553626121445
func TestScenarios(t *testing.T) {
	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Run("in fixed order", func(t *testing.T) {
				w := scenario.play(t, nil)
				compareGolden(t, name, w.lines)
			})
			for _, seed := range seeds(freshSeedsOfAScenario) {
				t.Run(fmt.Sprintf("with seed %d", seed), func(t *testing.T) {
					scenario.play(t, random(seed))
				})
			}
		})
	}
}

// TestAnythingMayHappen makes users, gates and crashes act at random. After that the
// world calms down, and must come to rest at its newest release.
func TestAnythingMayHappen(t *testing.T) {
	for _, seed := range seeds(freshSeedsOfChaos) {
		t.Run(fmt.Sprintf("with seed %d", seed), func(t *testing.T) { playChaos(t, random(seed)) })
	}
}

func seeds(fresh int) []uint64 {
	all := []uint64{*onlySeed}
	for *onlySeed == 0 && len(all) <= fresh**more {
		all = append(all, rand.Uint64())
	}
	return all
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// scenario is what users do: each event once and in order, when its time comes.
type scenario struct {
	rollout *fixture.RolloutBuilder
	setUp   func(*world)
	events  []event
	// ends is the final history.
	ends string
}

type event struct {
	when func(*world) bool
	who  string
	what string
	do   func(*world)
}

func (s scenario) play(t *testing.T, rng *rand.Rand) *world {
	t.Helper()
	w, people, done := s.begin(t, rng)
	w.runUntil(1000, people, done)
	w.staysAtRest()
	return w
}

// begin returns the world before its first step, what users do in each step, and whether
// the scenario has come to its end.
func (s scenario) begin(t *testing.T, rng *rand.Rand) (w *world, people func(), done func() bool) {
	t.Helper()
	w = newWorld(t, s.rollout, rng)
	if s.setUp != nil {
		s.setUp(w)
	}
	left := slices.Clone(s.events)
	people = func() {
		for len(left) > 0 && left[0].when(w) {
			w.log(left[0].who, "%s", left[0].what)
			left[0].do(w)
			left = left[1:]
		}
	}
	return w, people, func() bool { return len(left) == 0 && w.describeHistory() == s.ends && w.atRest() }
}

// runUntil steps until done reports true. It fails if that takes too many steps.
func (w *world) runUntil(bound int, people func(), done func() bool) {
	w.t.Helper()
	for range bound {
		w.step(people)
		if done() {
			return
		}
	}
	w.fail("it did not come to its end in %d iterations; history: %s", bound, w.describeHistory())
}

// atRest reports whether the last promotion has its outcome and runs everywhere, and no
// recheck is planned.
func (w *world) atRest() bool {
	return len(w.rollout.Status.History) > 0 && !w.current().State().Running() && w.recheckAt.IsZero() && w.allApplied()
}

// staysAtRest checks that the controller writes nothing once it is at rest.
func (w *world) staysAtRest() {
	w.t.Helper()
	for range 3 {
		w.advanceClock()
		if again := w.pass(); again {
			w.fail("the controller wrote although nothing had changed")
		}
	}
}

func compareGolden(t *testing.T, name string, lines []string) {
	t.Helper()
	file := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".golden")
	got := "## " + name + "\n\n" + strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, strings.Split(string(want), "\n"), strings.Split(got, "\n"))
}

func start(*world) bool { return true }

func at(moment time.Time) func(*world) bool {
	return func(w *world) bool { return !w.now.Before(moment) }
}

// once returns a function that reports whether the newest entry is that release in that
// state.
func once(tag string, state v1alpha1.BakeStatus) func(*world) bool {
	return func(w *world) bool { return w.current().Version.Tag == tag && w.current().State() == state }
}

func pushed(when func(*world) bool, tag string) event {
	return event{when, "registry", tag + " is pushed", func(w *world) { w.push(tag) }}
}

func pushedBad(when func(*world) bool, tag string) event {
	return event{when, "registry", tag + " is pushed, and nobody knows yet that it is broken", func(w *world) {
		w.push(tag)
		w.unhealthy[tag] = 0
	}}
}

func (w *world) push(tag string) {
	w.registry = append(w.registry, tag)
	w.memory.pushes++
}

func pinned(when func(*world) bool, tag string) event {
	return event{when, "user", "sets spec.wantedVersion to " + tag, func(w *world) {
		w.rollout.Spec.WantedVersion = &tag
		w.manually()
	}}
}

func asked(when func(*world) bool, key, value string) event {
	return event{when, "user", "annotates " + key + "=" + value, func(w *world) {
		w.annotate(key, value)
	}}
}

func unpinned(when func(*world) bool) event {
	return event{when, "user", "removes spec.wantedVersion", func(w *world) {
		w.rollout.Spec.WantedVersion = nil
		w.manually()
	}}
}

func gateSet(when func(*world) bool, what string, gates ...*fixture.GateBuilder) event {
	return event{when, "gates", what, func(w *world) {
		w.gates = nil
		for _, gate := range gates {
			w.gates = append(w.gates, *gate.Obj())
		}
	}}
}

func (w *world) addCheck(name string) *writer {
	added := &writer{check: *check(name).Obj(), every: 1}
	w.writers = append(w.writers, added)
	return added
}
