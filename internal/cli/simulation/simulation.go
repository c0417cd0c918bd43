// SPDX-License-Identifier: Apache-2.0

// Package simulation says what the engine will do and when, under assumptions about
// everything else: how long Flux takes to apply a release, and what changes when.
//
// It is pure. It asks package promotion at each moment at which something may change, and
// does in memory what the controller, Flux and the writers of HealthChecks would do.
package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// Assumptions are about everything that the engine does not decide.
type Assumptions struct {
	// Applies is how long Flux takes to apply a release to all targets.
	Applies time.Duration
	// Reports is how long the writers of HealthChecks take to report the same again after
	// the controller has reset a check.
	Reports time.Duration
	// Schedules returns the state of the schedules at a time; nil if there are none.
	Schedules func(time.Time) []promotion.Window
	// Events are what else happens, in any order.
	Events []Event
	// Until is the end of the simulation.
	Until time.Time
}

// Event is something that happens at a time: a gate opens, a release appears, a check
// fails.
type Event struct {
	At     time.Time
	Change func(*promotion.Input)
}

// Step is a moment at which the engine decided to do something.
type Step struct {
	At time.Time
	// Decision that was carried out.
	Decision promotion.Decision
	// Current is the newest entry of the history after it; nil if there is none.
	Current *v1alpha1.DeploymentHistoryEntry
}

// End is why a simulation ended.
type End string

const (
	// AtRest: nothing would happen any more, however long one waits.
	AtRest End = "AtRest"
	// OutOfTime: the next moment is after the end of the simulation.
	OutOfTime End = "OutOfTime"
	// OutOfSteps: too much happens to simulate all of it.
	OutOfSteps End = "OutOfSteps"
)

// mostSteps is how many moments are simulated, and mostPasses how often the engine is
// asked again at one moment because it has done something.
const (
	mostSteps  = 10000
	mostPasses = 12
)

// Result of a simulation.
type Result struct {
	Steps []Step
	// Last is the decision at the last moment, and At is that moment.
	Last promotion.Decision
	At   time.Time
	// Rollout is what the Rollout is at that moment.
	Rollout *v1alpha1.Rollout
	// End is why the simulation ended. It is empty if it failed.
	End End
}

// Run simulates from the time of the input on. The objects of the input stay as they are.
// It fails if the history of the Rollout does not allow what the engine decides, or if the
// engine finds more to do at one moment again and again.
func Run(in promotion.Input, a Assumptions) (Result, error) {
	return newWorld(in, a).run(a.Until)
}

func (w *world) run(until time.Time) (Result, error) {
	end, err := w.runUntil(until)
	w.result.End, w.result.Rollout = end, w.in.Rollout
	return w.result, err
}

func (w *world) runUntil(until time.Time) (End, error) {
	for range mostSteps {
		if err := w.settle(); err != nil {
			return "", err
		}
		next := w.next()
		switch {
		case next.IsZero():
			return AtRest, nil
		case next.After(until):
			return OutOfTime, nil
		}
		w.in.Now = next
	}
	return OutOfSteps, nil
}

// settle lets everyone act at one moment, until nobody does any more.
func (w *world) settle() error {
	w.happen()
	for range mostPasses {
		w.apply()
		w.report()
		w.look()
		d := w.decide(w.in)
		w.result.Last, w.result.At = d, w.in.Now
		again, err := w.carryOut(d)
		if err != nil {
			return fmt.Errorf("simulate %s at %s: %w", d.Action, clock(w.in.Now), err)
		}
		if !again {
			return nil
		}
	}
	return fmt.Errorf("the engine does not come to rest at %s: %s %s", clock(w.in.Now), w.result.Last.Action, w.result.Last.Message)
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// next returns the next moment at which something may change; zero if there is none.
func (w *world) next() time.Time {
	moments := []time.Time{w.result.Last.RecheckAt, w.appliedAt}
	if len(w.events) > 0 {
		moments = append(moments, w.events[0].At)
	}
	for _, report := range w.reports {
		moments = append(moments, report.at)
	}
	var next time.Time
	for _, moment := range moments {
		if moment.After(w.in.Now) && (next.IsZero() || moment.Before(next)) {
			next = moment
		}
	}
	return next
}

// happen makes the changes that are due.
func (w *world) happen() {
	for len(w.events) > 0 && !w.events[0].At.After(w.in.Now) {
		w.events[0].Change(&w.in)
		w.events = w.events[1:]
	}
}

func (w *world) look() {
	if w.schedules != nil {
		w.in.Gates.Schedules = w.schedules(w.in.Now)
	}
	w.in.Targets.All = w.in.Compared()
}

func byTime(events []Event) []Event {
	return slices.SortedStableFunc(slices.Values(events), func(a, b Event) int { return a.At.Compare(b.At) })
}
