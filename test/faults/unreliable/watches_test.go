// SPDX-License-Identifier: Apache-2.0

package unreliable

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/stage"
	"github.com/fluxrollouts/rollout-controller/test/faults/report"
)

// breath is how long a watch lives. Kubernetes' client opens one that lived for a
// second at once anew; otherwise it waits, longer each time, up to a minute.
const breath = 1500 * time.Millisecond

func TestWatchesMayBreakAllTheTime(t *testing.T) {
	told := report.Begin(t, "all connections break every 1.5 s, and with them all watches and what is under way; then watches break off alone, or are too old",
		"the same history; nothing is missed; each target is written once for each release")
	f := newFleet(t, 6)
	stop := f.endWatches(forEver, f.breakConnections)
	for range number(t, roundsVariable, 4) {
		f.round()
	}
	ended := stop()
	stop = f.endWatches(4, f.wire.CutWatches, f.wire.ExpireWatches)
	f.round()
	ended += stop()
	story := f.holds()
	told.Saw(ended, "%d Rollouts, %d releases: %d promotions, none twice, no target written twice; %d requests",
		len(f.apps), len(f.released), story.Promotions, len(f.wire.Log()))
}

// forEver is more often than there is time for.
const forEver = math.MaxInt

// breakConnections counts the watches that end with it.
func (f *fleet) breakConnections() int {
	open := f.wire.OpenWatches()
	f.wire.BreakConnections()
	return open
}

// endWatches ends all watches again and again, each time in another way. What it
// returns stops it, and says how many were ended.
func (f *fleet) endWatches(times int, ways ...func() int) (stop func() int) {
	ctx, cancel := context.WithCancel(f.t.Context())
	var group sync.WaitGroup
	var ended int
	group.Go(func() {
		for n := range times {
			select {
			case <-ctx.Done():
				return
			case <-time.After(breath):
				ended += ways[n%len(ways)]()
			}
		}
	})
	return func() int {
		cancel()
		group.Wait()
		return ended
	}
}

func TestWhatHappensWhileNoWatchIsUpIsSeen(t *testing.T) {
	told := report.Begin(t, "no watch is up while a release is published, and while a gate is closed, opened and deleted",
		"nothing is missed: what was released goes out, what was closed holds, what was opened lets go")
	f := newFleet(t, 1)
	f.round()
	app, gate := f.apps[0], closedGate(f.apps[0])
	blind := 0
	unseen := func(happens func()) {
		blind += f.wire.RefuseWatches()
		happens()
		f.wire.AllowWatches()
	}

	unseen(func() { f.publish("1.1.0") })
	app.AwaitState("1.1.0", v1alpha1.BakeSucceeded)

	unseen(func() { app.Create(gate) })
	app.Await("a closed gate", func(r *v1alpha1.Rollout) bool { return len(r.Status.Gates) == 1 && !*r.Status.Gates[0].Passing })
	unseen(func() { f.publish("1.2.0") })
	app.AwaitCandidate("1.2.0")
	app.Stays("on 1.1.0", func(r *v1alpha1.Rollout) bool { return r.Current().Version.Tag == "1.1.0" })

	unseen(func() { app.Change(gate, func() { gate.Spec.Passing = new(true) }) })
	app.AwaitState("1.2.0", v1alpha1.BakeSucceeded)

	unseen(func() {
		app.Delete(gate)
		f.publish("1.3.0")
	})
	app.AwaitState("1.3.0", v1alpha1.BakeSucceeded)

	story := f.holds()
	told.Saw(blind, "%d promotions, each seen as soon as watches were up again", story.Promotions)
}

// publish releases a version, and waits until Flux offers it.
func (f *fleet) publish(version string) {
	f.t.Helper()
	f.released = append(f.released, version)
	for _, s := range f.apps {
		s.Release(version)
		s.AwaitOffer(version)
	}
}

func closedGate(s *stage.Application) *v1alpha1.RolloutGate {
	gate := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "closed"}}
	gate.Spec.RolloutRef = &v1alpha1.LocalObjectReference{Name: s.Name}
	gate.Spec.Passing = new(false)
	return gate
}
