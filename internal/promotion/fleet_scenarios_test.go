// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

// fleetScenario is what happens to two Rollouts of a namespace. dev gets each release at
// once, prod when its gate opens.
type fleetScenario struct {
	events []fleetEvent
	// ends are the final histories of dev and prod.
	ends [2]string
}

type fleetEvent struct {
	when func(dev, prod *world) bool
	who  string
	what string
	do   func(dev, prod *world)
}

var fleetScenarios = map[string]fleetScenario{
	"a fleet learns from a failure": {
		events: []fleetEvent{
			pushedToAll(begin, "1.0.0", false),
			pushedToAll(bothRun("1.0.0"), "1.1.0", true),
			prodOpens(devOnce("1.0.0", v1alpha1.BakeDeploying), "1.1.0"),
			pushedToAll(isPhase("1.1.0", v1alpha1.QuarantineConfirmed), "1.2.0", false),
			prodOpens(devOnce("1.2.0", v1alpha1.BakeSucceeded), "1.1.0", "1.2.0"),
		},
		ends: [2]string{
			"1.2.0 Succeeded, 1.0.0 Succeeded, 1.1.0 Failed, 1.0.0 Succeeded",
			"1.2.0 Succeeded, 1.0.0 Succeeded",
		},
	},
	"a failure that the release did not cause is refuted": {
		events: []fleetEvent{
			pushedToAll(begin, "1.0.0", false),
			pushedToAll(bothRun("1.0.0"), "1.1.0", false),
			{devOnce("1.1.0", v1alpha1.BakeInProgress), "fate", "fills the disk of dev's database", func(dev, _ *world) { dev.sick = true }},
			prodOpens(devOnce("1.0.0", v1alpha1.BakeDeploying), "1.1.0"),
			{isPhase("1.1.0", v1alpha1.QuarantineRefuted), "user", "empties the disk", func(dev, _ *world) { dev.sick = false }},
		},
		ends: [2]string{
			"1.0.0 Succeeded, 1.1.0 Failed, 1.0.0 Succeeded",
			"1.1.0 Succeeded, 1.0.0 Succeeded",
		},
	},
}

// TestFleetScenarios compares what happens with the golden file of the scenario. See
// TestScenarios for how to write it again.
func TestFleetScenarios(t *testing.T) {
	for name, scenario := range fleetScenarios {
		t.Run(name, func(t *testing.T) {
			f := scenario.play(t)
			compareGolden(t, name, f.lines)
		})
	}
}

func (s fleetScenario) play(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(t, nil)
	for _, name := range []string{"dev", "prod"} {
		w := f.add(name, guarded().RollsBack(ignoringBarriers, bakingFor(10*time.Minute)))
		w.rollout.Spec.Quarantine = &v1alpha1.RolloutQuarantine{}
		w.addCheck("smoke")
	}
	dev, prod := f.worlds[0], f.worlds[1]
	prod.gates = []v1alpha1.RolloutGate{*gate("tests").Allow().Obj()}
	people := func() {
		for len(s.events) > 0 && s.events[0].when(dev, prod) {
			f.lines = append(f.lines, "["+s.events[0].who+"] "+s.events[0].what)
			s.events[0].do(dev, prod)
			s.events = s.events[1:]
		}
	}
	for range 300 {
		f.step(people)
		if len(s.events) == 0 && s.ends == [2]string{dev.describeHistory(), prod.describeHistory()} && dev.allApplied() && prod.allApplied() {
			return f
		}
	}
	f.fail("it did not come to its end; histories: %s and %s", dev.describeHistory(), prod.describeHistory())
	return f
}

func begin(*world, *world) bool { return true }

func bothRun(tag string) func(dev, prod *world) bool {
	is := once(tag, v1alpha1.BakeSucceeded)
	return func(dev, prod *world) bool { return is(dev) && is(prod) }
}

func devOnce(tag string, state v1alpha1.BakeStatus) func(dev, prod *world) bool {
	return func(dev, _ *world) bool { return once(tag, state)(dev) }
}

// isPhase returns a function that reports what is known of a release.
func isPhase(tag string, phase v1alpha1.QuarantinePhase) func(dev, prod *world) bool {
	return func(dev, _ *world) bool {
		name, _ := quarantine.Name(sharedContent(tag, 0))
		q := dev.fleet.stored[v1alpha1.ReleaseQuarantineKind+" "+name]
		return q != nil && q.Status.Phase == phase
	}
}

func pushedToAll(when func(dev, prod *world) bool, tag string, bad bool) fleetEvent {
	what := tag + " is pushed"
	if bad {
		what += ", and nobody knows yet that it is broken"
	}
	return fleetEvent{when, "registry", what, func(dev, prod *world) {
		for _, w := range []*world{dev, prod} {
			if w.push(tag); bad {
				w.unhealthy[tag] = 0
			}
		}
	}}
}

func prodOpens(when func(dev, prod *world) bool, tags ...string) fleetEvent {
	return fleetEvent{when, "gates", "tests has passed " + tags[len(tags)-1] + " for prod", func(_, prod *world) {
		prod.gates = []v1alpha1.RolloutGate{*gate("tests").Allow(tags...).Obj()}
	}}
}
