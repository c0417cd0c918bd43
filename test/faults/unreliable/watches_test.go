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
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/faults/report"
	"github.com/fluxrollouts/rollout-controller/test/faults/wire"
)

const (
	// breath is how long all watches are open before they break. Kubernetes' client opens
	// a watch again at once if it lasted for a second. Otherwise it waits, longer each
	// time, up to a minute.
	breath = 1200 * time.Millisecond
	// longest is the longest wait for watches to be open.
	longest = 10 * time.Second
	// glance is the time between two counts of the watches.
	glance = 20 * time.Millisecond
)

func TestWatchesMayBreakAllTheTime(t *testing.T) {
	reported := report.Begin(t, "all connections break again and again, as soon as all watches are up, and with them what is under way; then watches break off alone, or are too old",
		"the same history; nothing is missed; each target is written once for each release")
	t.Parallel()
	f := newFleet(t, 6)
	stop := f.endWatches(forEver, f.breakConnections)
	for range number(t, roundsVariable, 3) {
		f.round()
	}
	ended := stop()
	stop = f.endWatches(2, f.wire.CutWatches, f.wire.ExpireWatches)
	f.round()
	ended += stop()
	found := f.holds()
	reported.Saw(ended, "%d Rollouts, %d releases: %d promotions, none twice, no target written twice; %d requests",
		len(f.apps), len(f.released), found.Promotions, len(f.wire.Log()))
}

// forEver is more often than the time allows.
const forEver = math.MaxInt

// breakConnections breaks all connections, and returns how many watches ended with them.
func (f *fleet) breakConnections() int {
	open := f.wire.OpenWatches()
	f.wire.BreakConnections()
	return open
}

// endWatches ends all watches repeatedly, each time in another way. The returned function
// stops this, and returns how many watches were ended.
func (f *fleet) endWatches(times int, ways ...func() int) (stop func() int) {
	ctx, cancel := context.WithCancel(f.t.Context())
	var group sync.WaitGroup
	var ended int
	group.Go(func() {
		up := 0
		for n := range times {
			if up = f.watchesAreUp(ctx, up); ctx.Err() != nil {
				return
			}
			ended += ways[n%len(ways)]()
		}
	})
	return func() int {
		cancel()
		group.Wait()
		return ended
	}
}

// watchesAreUp waits until at least a number of watches have been open for a breath, and
// returns how many are open. The wait has a limit, because a client may need fewer
// watches than before.
func (f *fleet) watchesAreUp(ctx context.Context, least int) int {
	up, since := f.wire.OpenWatches(), time.Now()
	for begin := since; ctx.Err() == nil && time.Since(begin) < longest; time.Sleep(glance) {
		if now := f.wire.OpenWatches(); now != up || now < least {
			up, since = now, time.Now()
		}
		if time.Since(since) >= breath {
			break
		}
	}
	return up
}

func TestChangesAreSeenThatHappenWhileNoWatchIsUp(t *testing.T) {
	reported := report.Begin(t, "no watch is up while a release is published, and while a gate is closed, opened and deleted: those that are opened break off, or are not answered",
		"nothing is missed: what was released goes out, what was closed holds, what was opened lets go")
	t.Parallel()
	f := newFleet(t, 1)
	f.round()
	app, gate := f.apps[0], closedGate(f.apps[0])
	blind := 0
	unseen := func(end func(*wire.Wire) int, happens func()) {
		blind += end(f.wire)
		happens()
		f.wire.AllowWatches()
	}
	refused, held := (*wire.Wire).RefuseWatches, (*wire.Wire).HoldWatches

	unseen(refused, func() { f.publish("1.1.0") })
	app.AwaitState("1.1.0", v1alpha1.BakeSucceeded)

	unseen(held, func() { app.Create(gate) })
	app.Await("a closed gate", func(r *v1alpha1.Rollout) bool { return len(r.Status.Gates) == 1 && !*r.Status.Gates[0].Passing })
	unseen(refused, func() { f.publish("1.2.0") })
	app.AwaitCandidate("1.2.0")
	app.Stays("on 1.1.0", func(r *v1alpha1.Rollout) bool { return r.Current().Version.Tag == "1.1.0" })

	unseen(held, func() { app.Change(gate, func() { gate.Spec.Passing = new(true) }) })
	app.AwaitState("1.2.0", v1alpha1.BakeSucceeded)

	unseen(held, func() {
		app.Delete(gate)
		f.publish("1.3.0")
	})
	app.AwaitState("1.3.0", v1alpha1.BakeSucceeded)

	found := f.holds()
	reported.Saw(blind, "%d promotions, each seen as soon as watches were up again", found.Promotions)
}

// publish releases a version, and waits until Flux reports it.
func (f *fleet) publish(version string) {
	f.t.Helper()
	f.released = append(f.released, version)
	for _, s := range f.apps {
		s.Release(version)
		s.AwaitOffer(version)
	}
}

func closedGate(s *env.Application) *v1alpha1.RolloutGate {
	gate := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "closed"}}
	gate.Spec.RolloutRef = &v1alpha1.LocalObjectReference{Name: s.Name}
	gate.Spec.Passing = new(false)
	return gate
}
