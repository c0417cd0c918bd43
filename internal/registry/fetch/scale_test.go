// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"container/heap"
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

var more = flag.Int("seeds", 1, "if more than one, simulate this many times twenty clusters instead of two")

const (
	// The clusters do not affect each other. Many of them only show how much that is.
	fewClusters  = 2
	manyClusters = 20
	manyRollouts = 500
	deploy       = 3 * time.Minute
	bake         = 30 * time.Minute
)

// application is one that staging releases once, and what its report says from when on.
type application struct {
	key     types.NamespacedName
	release time.Time
	at      []time.Time
	stored  []registry.Stored
}

// applicationsOf returns applications that are released one after the other within an hour.
func applicationsOf(t *testing.T, count int) []application {
	t.Helper()
	signing, _ := key(t, 1)
	var all []application
	for i := range count {
		a := application{
			key:     types.NamespacedName{Namespace: fmt.Sprint("team-", i%50), Name: fmt.Sprint("shop-", i)},
			release: fixture.Noon.Add(10*time.Minute + time.Duration(i)*time.Hour/time.Duration(count)),
		}
		baked := a.release.Add(deploy + bake)
		for sequence, says := range []struct {
			at      time.Time
			release environmentsv1.Release
		}{
			{fixture.Noon, proven("1.3.0")}, {a.release, deploying("1.4.0")},
			{a.release.Add(deploy), baking("1.4.0", baked)}, {baked, proven("1.4.0")},
		} {
			r := said(int64(sequence+1), says.release)
			r.Namespace, r.Rollout = a.key.Namespace, a.key.Name
			envelope, err := report.Sign(r, signing)
			if err != nil {
				t.Fatal(err)
			}
			a.at = append(a.at, says.at)
			a.stored = append(a.stored, registry.Stored{Digest: fmt.Sprint(a.key, sequence), Envelope: envelope})
		}
		all = append(all, a)
	}
	return all
}

// environmentOf returns the Environment of an application in production.
func environmentOf(a application) *environmentsv1.Environment {
	e := fixture.MakeEnvironment(a.key.Name).InNamespace(a.key.Namespace).After("staging", func(u *environmentsv1.Upstream) {
		u.Namespace, u.Rollout, u.Repository, u.Cluster = a.key.Namespace, a.key.Name, "registry.example.com/promotions", "staging-eu"
	}).Obj()
	e.Spec.Backend.Type = environmentsv1.BackendOCI
	return e
}

// environments is a cache of Environments.
type environments map[types.NamespacedName]*environmentsv1.Environment

func (c environments) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	*o.(*environmentsv1.Environment) = *c[key]
	return nil
}

func (c environments) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return nil
}

// production is a cluster after staging. Its Rollouts ask as their reconcilers would.
type production struct {
	*Store
	clock    *clocktesting.FakeClock
	apps     map[types.NamespacedName]*application
	events   events
	requests map[types.NamespacedName]int
	promoted map[types.NamespacedName]time.Duration // after the end of the bake in staging
	finished map[types.NamespacedName]bool
}

func openProduction(keys report.TrustedKeys, apps []application) *production {
	p := &production{
		clock: clocktesting.NewFakeClock(fixture.Noon), apps: map[types.NamespacedName]*application{},
		requests: map[types.NamespacedName]int{}, promoted: map[types.NamespacedName]time.Duration{}, finished: map[types.NamespacedName]bool{},
	}
	cache := environments{}
	for i := range apps {
		p.apps[apps[i].key], cache[apps[i].key] = &apps[i], environmentOf(apps[i])
	}
	trusted := func(context.Context, *environmentsv1.Environment) (report.TrustedKeys, *verdict.Problem, error) {
		return keys, nil, nil
	}
	place := func(_ context.Context, e *environmentsv1.Environment, u environmentsv1.Upstream) (registry.Place, error) {
		return registry.Place{Repository: u.Repository, Namespace: e.Namespace, Tag: e.Name}, nil
	}
	p.Store = newStore(cache, p.pullCounted, trusted, place, logr.Discard(), p.clock)
	p.wakeEnvironment = func(e types.NamespacedName) { p.events.add(p.clock.Now(), e, p.decide) }
	p.wakeRollout = func(r types.NamespacedName) { p.finished[r] = true }
	return p
}

// pullCounted counts the requests, without those that log in.
func (p *production) pullCounted(_ context.Context, place registry.Place, known string) (registry.Stored, error) {
	key := types.NamespacedName{Namespace: place.Namespace, Name: place.Tag}
	a, now := p.apps[key], p.clock.Now()
	var stored registry.Stored
	for i, at := range a.at {
		if !at.After(now) {
			stored = a.stored[i]
		}
	}
	p.requests[key]++ // for the digest, or for all
	if known == stored.Digest {
		return registry.Stored{Digest: known}, nil
	}
	if known != "" {
		p.requests[key]++
	}
	return stored, nil
}

// ask replaces the lookups of a Rollout and fetches when they are due.
func (p *production) ask(key types.NamespacedName, lookups ...Lookup) {
	p.Ask(key, lookups)
	p.follow(key)
}

func (p *production) follow(key types.NamespacedName) {
	k := p.upstreams[Upstream{key, "staging"}]
	if at, wanted := k.due(); wanted {
		p.events.add(at, key, p.fetches)
	}
}

func (p *production) fetches(key types.NamespacedName) {
	p.serve(context.Background(), Upstream{key, "staging"})
	p.follow(key)
}

// sees is what a Rollout does when the new release appears.
func (p *production) sees(key types.NamespacedName) {
	p.ask(key, Lookup{Upstream: Upstream{key, "staging"}})
}

// decide promotes the release once staging has proven it. The own bake ends with a fetch.
func (p *production) decide(key types.NamespacedName) {
	result, _ := p.Last(Upstream{key, "staging"})
	_, done := p.promoted[key]
	if newest := result.Report.Releases[0]; done || newest.Tag != "1.4.0" || newest.Evidence == "" {
		return
	}
	p.promoted[key] = p.clock.Since(p.apps[key].at[3])
	p.ask(key, Lookup{Upstream{key, "staging"}, p.clock.Now().Add(deploy + bake)})
}

// run lets some hours pass.
func (p *production) run(end time.Time) {
	for len(p.events) > 0 && !p.events[0].at.After(end) {
		next := heap.Pop(&p.events).(event)
		if next.at.After(p.clock.Now()) {
			p.clock.SetTime(next.at)
		}
		next.do(next.key)
	}
	p.clock.SetTime(end)
}

// total returns the number of requests.
func (p *production) total() (sum, most int) {
	for _, n := range p.requests {
		sum, most = sum+n, max(most, n)
	}
	return sum, most
}

// TestManyClustersAskOneRegistry: each release costs a Rollout ten requests at most, no
// matter how many there are, and nothing at rest.
func TestManyClustersAskOneRegistry(t *testing.T) {
	g := NewWithT(t)
	clusters := fewClusters
	if *more > 1 {
		clusters = manyClusters * *more
	}
	signing, _ := key(t, 1)
	apps, all, highest := applicationsOf(t, manyRollouts), 0, 0
	for c := range clusters {
		p := openProduction(signing.Trusted(), apps)
		for i := range apps {
			key := apps[i].key
			p.Once(Upstream{key, "staging"})
			p.events.add(fixture.Noon, key, p.fetches)
			scanned := time.Duration((i*7+c*13)%60) * time.Second
			p.events.add(apps[i].release.Add(scanned), key, p.sees)
		}
		p.run(fixture.Noon.Add(9 * time.Minute))
		sum, _ := p.total()
		g.Expect(sum).To(Equal(manyRollouts), "each once, when the process starts")
		clear(p.requests)
		p.run(fixture.Noon.Add(4 * time.Hour))
		sum, most := p.total()
		all, highest = all+sum, max(highest, most)
		g.Expect(most).To(BeNumerically("<=", 10))
		g.Expect(p.finished).To(HaveLen(manyRollouts))
		for key, late := range p.promoted {
			g.Expect(late).To(BeNumerically("~", 5*time.Second, 5*time.Second), key.String())
		}
		clear(p.requests)
		p.run(fixture.Noon.Add(24 * time.Hour))
		g.Expect(p.requests).To(BeEmpty(), "at rest")
		p.queue.ShutDown()
	}
	t.Logf("%d clusters with %d Rollouts each: %d requests for one release of each, %.1f per Rollout, at most %d, %d per cluster",
		clusters, manyRollouts, all, float64(all)/float64(clusters*manyRollouts), highest, all/clusters)
}

// events are what happens next, the earliest first.
type events []event

type event struct {
	at  time.Time
	key types.NamespacedName
	do  func(types.NamespacedName)
}

func (e *events) add(at time.Time, key types.NamespacedName, do func(types.NamespacedName)) {
	heap.Push(e, event{at, key, do})
}

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }

// Push adds an event.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop removes the last event.
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
