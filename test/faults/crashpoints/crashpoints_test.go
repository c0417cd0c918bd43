// SPDX-License-Identifier: Apache-2.0

package crashpoints

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/test/crashscenario"
	"github.com/fluxrollouts/rollout-controller/test/faults/observer"
	"github.com/fluxrollouts/rollout-controller/test/faults/report"
	"github.com/fluxrollouts/rollout-controller/test/faults/wire"
)

// atOnce is how many worlds exist at the same time.
const atOnce = 8

func TestControllerMayBeKilledAtEachOfItsWrites(t *testing.T) {
	reported := report.Begin(t, "kill -9 at each write, before the API server sees it and after it has carried it out",
		"the same history and status; each target is written once for each release")
	found := killAtEachWrite(t, crashscenario.New)
	reported.Saw(found.kills, "a scenario of 4 promotions, 2 targets and a HealthCheck makes %d writes; it ended the same %d times; "+
		"%d promotions, none twice; %d of %d events were repeated", found.writes, found.runs, found.promotions, found.again, found.events)
}

func TestControllerMayBeKilledWhileItRollsBack(t *testing.T) {
	reported := report.Begin(t, "kill -9 at each write of a failure, its report, the rollback and the fix, before the API server sees it and after it has carried it out",
		"one rollback for one failure, which is listed once; each target is written once for each; the release that failed does not come back")
	found := killAtEachWrite(t, crashscenario.Rollback)
	reported.Saw(found.kills, "a release that fails, its quarantine, the rollback and the fix make %d writes; it ended the same %d times; "+
		"%d promotions, none twice; %d of %d events were repeated", found.writes, found.runs, found.promotions, found.again, found.events)
}

func TestControllerMayBeKilledWhileItPromotesWhatPeopleApproved(t *testing.T) {
	reported := report.Begin(t, "kill -9 at each write of two promotions that people approved, one that goes by an override, and a way back, before the API server sees it and after it has carried it out",
		"the history names who let each promotion go; each decision is used once, although both newer releases are offered again")
	found := killAtEachWrite(t, crashscenario.Approvals)
	reported.Saw(found.kills, "three releases with approvals, and the way back, make %d writes; it ended the same %d times; "+
		"%d promotions, none twice; %d of %d events were repeated", found.writes, found.runs, found.promotions, found.again, found.events)
}

// mostMissed is how many kills may not happen, because a run has other writes at that place:
// one less, because two changes of a status that come soon enough after each other are one
// write, or an event where there is a change otherwise.
const mostMissed = 4

// found is what was seen of all runs of a scenario.
type found struct {
	kills, writes, runs, promotions, again, events int
}

// killAtEachWrite plays a scenario once without faults, and then once for each point at
// which the controller is killed. All must end the same.
func killAtEachWrite(t *testing.T, scenario func() *crashscenario.Scenario) found {
	t.Helper()
	seen := observer.Watch(t, shared.ControlPlane)
	clean := open(t, scenario())
	clean.play(func() bool { return true })
	want, writes, events := clean.outcome(), clean.wire.Writes(), clean.events()
	if diff := cmp.Diff(clean.Want(), want.State); diff != "" {
		t.Fatalf("without a fault it ends otherwise (-want +got):\n%s", diff)
	}
	_ = clean.controller.Kill()

	var kills, again atomic.Int32
	inParallel(points(writes), func(p point) {
		t.Run(p.name, func(t *testing.T) {
			r := open(t, scenario())
			r.killAt(p)
			r.play(func() bool { return r.wasKilledAt(p) || r.madeFewer(p.write) })
			if diff := cmp.Diff(want, r.outcome()); diff != "" {
				t.Errorf("it ends otherwise (-want +got):\n%s", diff)
			}
			kills.Add(r.kills.Load())
			again.Add(int32(repeatedEvents(t, events, r.events(), len(p.faults))))
		})
	})
	held := seen.Holds()
	if held.Repeated()+held.Late > 0 {
		t.Errorf("%d writes of targets were one too many, %d came late", held.Repeated(), held.Late)
	}
	if want := 2 * len(writes); int(kills.Load()) > want || int(kills.Load()) < want-mostMissed {
		t.Errorf("the controller was killed %d times, want %d, or %d fewer", kills.Load(), want, mostMissed)
	}
	runs := len(points(writes))
	return found{int(kills.Load()), len(writes), runs, held.Promotions, int(again.Load()), runs * sum(events)}
}

// point is a write at which the controller is killed. If there is another fault, the next
// controller is killed when it makes the same write again.
type point struct {
	name   string
	write  int
	faults []wire.Fault
}

// points returns two kills at each write. Both are in one run if the next controller
// makes the write again. An event is not sent again if the controller is killed before
// the event is stored.
func points(writes []wire.Entry) []point {
	var all []point
	for i, entry := range writes {
		what := fmt.Sprintf("write %d, %s %s", i+1, entry.Verb, entry.Resource)
		before, after := wire.Drop(), wire.Lose()
		if entry.IsEvent() {
			all = append(all, point{"before " + what, i + 1, []wire.Fault{before}}, point{"after " + what, i + 1, []wire.Fault{after}})
			continue
		}
		all = append(all, point{"before and after " + what, i + 1, []wire.Fault{before, after}})
	}
	return all
}

// inParallel calls a function for all items, for some of them at the same time.
func inParallel[T any](all []T, do func(T)) {
	var group sync.WaitGroup
	next := make(chan T)
	for range atOnce {
		group.Go(func() {
			for item := range next {
				do(item)
			}
		})
	}
	for _, item := range all {
		next <- item
	}
	close(next)
	group.Wait()
}

// repeatedEvents counts the events that were emitted more often than without a fault. Each
// kill may cause one: the event of the write that was in progress.
func repeatedEvents(t *testing.T, want, got map[string]int, deaths int) int {
	t.Helper()
	again := 0
	for event, times := range got {
		if want[event] == 0 {
			t.Errorf("an event that is not expected: %s", event)
		}
		again += max(times-want[event], 0)
	}
	if again > deaths {
		t.Errorf("%d events were repeated (-want +got):\n%s", again, cmp.Diff(want, got))
	}
	return again
}

func sum(counts map[string]int) int {
	n := 0
	for _, count := range counts {
		n += count
	}
	return n
}
