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
			pushedToAll(devOnce("1.0.0", v1alpha1.BakeSucceeded), "1.2.0", false),
			prodOpens(devOnce("1.2.0", v1alpha1.BakeSucceeded), "1.1.0", "1.2.0"),
		},
		ends: [2]string{
			"1.2.0 Succeeded, 1.0.0 Succeeded, 1.1.0 Failed, 1.0.0 Succeeded",
			"1.2.0 Succeeded, 1.0.0 Succeeded",
		},
	},
	"a user lifts what the release did not cause": {
		events: []fleetEvent{
			pushedToAll(begin, "1.0.0", false),
			pushedToAll(bothRun("1.0.0"), "1.1.0", false),
			{devOnce("1.1.0", v1alpha1.BakeInProgress), "fate", "fills the disk of dev's database", func(dev, _ *world) { dev.sick = true }},
			prodOpens(devOnce("1.0.0", v1alpha1.BakeDeploying), "1.1.0"),
			{begin, "user", "empties the disk", func(dev, _ *world) { dev.sick = false }},
			{devOnce("1.0.0", v1alpha1.BakeSucceeded), "user", "lifts the quarantine of 1.1.0", func(dev, _ *world) {
				q := dev.fleet.quarantineOf("1.1.0")
				q.Spec.Lifted = true
				dev.forgive(q)
			}},
		},
		ends: [2]string{
			"1.1.0 Succeeded, 1.0.0 Succeeded, 1.1.0 Failed, 1.0.0 Succeeded",
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

// A rollback that helps does not make it longer.
func TestFailedReleaseIsHeldForADay(t *testing.T) {
	f := fleetScenarios["a fleet learns from a failure"].play(t)
	failed := f.worlds[0].rollout.Status.History[2]
	diff(t, v1alpha1.BakeFailed, failed.State())
	diff(t, failed.BakeEndTime.Add(24*time.Hour), f.quarantineOf("1.1.0").Status.Until.Time)
}

func (s fleetScenario) play(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(t, nil)
	for _, name := range []string{"dev", "prod"} {
		w := f.add(name, guarded().RollsBack(bakingFor(10*time.Minute)))
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

// quarantineOf returns the quarantine of a release.
func (f *fleet) quarantineOf(tag string) *kept {
	name, _ := quarantine.Name(sharedContent(tag, 0))
	return f.stored[v1alpha1.ReleaseQuarantineKind+" "+name]
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
