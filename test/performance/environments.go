// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// fullHistory is how many releases each Rollout was promoted to before Environments are
// measured: more than a history keeps. Otherwise it would grow from wave to wave, and
// what that costs would look like the cost of Environments.
const fullHistory = 11

// nudges is how often the objects around a Rollout that is held are changed.
const nudges = 3

// pairs returns how many pairs of staging and production the fleet has. The first Rollouts
// are those of staging, and those of production follow. Both of a pair are in the same
// namespace.
func (f fleet) pairs() int {
	half := f.rollouts / 2
	return half - half%f.namespaces
}

// environment returns the Environment of a Rollout.
func (f fleet) environment(i int) *environmentsv1.Environment {
	staging := i % f.pairs()
	o := &environmentsv1.Environment{Spec: environmentsv1.EnvironmentSpec{
		RolloutRef: v1alpha1.LocalObjectReference{Name: f.name(i)}, Name: f.name(staging), Environment: "staging",
		Backend: environmentsv1.Backend{Type: environmentsv1.BackendCluster},
	}}
	o.TypeMeta, o.ObjectMeta = f.meta(environmentsv1.GroupVersion.WithKind(environmentsv1.EnvironmentKind), i)
	if i != staging {
		o.Spec.Environment = "production"
		o.Spec.Upstreams = []environmentsv1.Upstream{{Environment: "staging", Rollout: f.name(staging)}}
	}
	return o
}

// chain is what a release for all cost: for staging first, then for production.
type chain struct {
	promotions          int     // of each
	staging, production cost    // until all is quiet
	heap, peak          float64 // memory afterwards, and the most meanwhile, in mebibytes
}

// measureEnvironments measures the same fleet without Environments and with them.
func (b *bench) measureEnvironments(ctx context.Context, p plan) (measured, error) {
	m := measured{}
	alone, err := b.releaseInTurn(ctx, p, "without")
	if err != nil {
		return m, err
	}
	created, err := b.costOf(ctx, func() error { return b.createEnvironments(ctx) })
	if err != nil {
		return m, err
	}
	b.print("Environments: recorded with CPU %s, %v", created.cpu, created.requests)
	chained, err := b.releaseInTurn(ctx, p, "with")
	if err != nil {
		return m, err
	}
	chained.show(m)
	chained.compare(alone, m)
	return m, b.measureHold(ctx, m)
}

func (b *bench) createEnvironments(ctx context.Context) error {
	return forEach(ctx, namers, 2*b.fleet.pairs(), func(ctx context.Context, i int) error {
		return b.admin.create(ctx, environments, b.fleet.namespace(i), b.fleet.environment(i))
	})
}

// releaseInTurn releases for staging, and for production when all is quiet.
func (b *bench) releaseInTurn(ctx context.Context, p plan, title string) (c chain, err error) {
	all := b.some(2 * b.fleet.pairs())
	c.promotions = len(all) / 2
	b.program.forgetMemory()
	r := b.publish()
	if c.staging, err = b.releaseHalf(ctx, p, r, "-staging", all[:c.promotions]); err != nil {
		return c, err
	}
	if c.production, err = b.releaseHalf(ctx, p, r, "-production", all[c.promotions:]); err != nil {
		return c, err
	}
	most, err := b.program.mostMemory()
	if err != nil {
		return c, err
	}
	c.peak = float64(most.Own) / mebi
	c.heap, err = b.heap(ctx)
	b.print("%s Environments: %.0f MiB, at most %.0f MiB", title, c.heap, c.peak)
	return c, err
}

func (b *bench) releaseHalf(ctx context.Context, p plan, r release, title string, some []int) (cost, error) {
	_, spent, err := b.profiled(ctx, p, r, title, some)
	b.print("%s%s: %s, %v", r.tag, title, spent.each(len(some)), spent.requests)
	return spent, err
}

// heap returns the memory of what the controller keeps, in mebibytes.
func (b *bench) heap(ctx context.Context) (float64, error) {
	if _, err := b.program.fetch(ctx, "debug/pprof/heap?gc=1", io.Discard); err != nil {
		return 0, err
	}
	families, err := scenario.Metrics(ctx, b.program.metrics)
	return scenario.Total(families["go_memstats_heap_alloc_bytes"].GetMetric()) / mebi, err
}

// whole returns the cost of both halves.
func (c chain) whole() cost {
	var sum cost
	sum.add(c.staging)
	sum.add(c.production)
	return sum
}

// show adds the figures of a fleet with Environments. Only production reads what others
// say. Staging is recorded as well, and what was recorded is recorded in production again.
func (c chain) show(m measured) {
	each, both := float64(c.promotions), float64(2*c.promotions)
	counts, records := counted(c.production.requests), counted(c.whole().requests)
	for _, key := range []string{"reads", "status", "events"} {
		m["environments."+key] = float64(counts[key]) / each
	}
	m["environments.records"] = float64(records["records"]) / both
	m["environments.cpu"] = millis(c.whole().cpu) / both
	m["environments.heap"], m["environments.peak"] = c.heap, c.peak
}

// compare compares with the same fleet without Environments.
func (c chain) compare(alone chain, m measured) {
	m["environments.alone.cpu"] = millis(alone.whole().cpu) / float64(2*alone.promotions)
	m["environments.alone.heap"], m["environments.alone.peak"] = alone.heap, alone.peak
	m["environments.cpuratio"] = c.whole().work / alone.whole().work
	m["environments.productionratio"] = c.production.work / alone.production.work
	m["environments.garbageratio"] = c.whole().allocated / alone.whole().allocated
	m["environments.heapratio"] = c.heap / alone.heap
}

// measureHold releases for production first, where the release is held, changes what is
// around it, and then releases for staging.
func (b *bench) measureHold(ctx context.Context, m measured) error {
	count := min(b.fleet.pairs(), smallest.Rollouts/2)
	staging := b.some(count)
	production := make([]int, count)
	for i := range production {
		production[i] = b.fleet.pairs() + i
	}
	r := b.publish()
	begun, err := b.costOf(ctx, func() error { return b.name(ctx, newWave(r, production...), func(int) {}) })
	if err != nil {
		return err
	}
	held, err := b.costOf(ctx, func() error { return b.nudge(ctx, staging, production) })
	if err != nil {
		return err
	}
	m["environments.hold"] = float64(writesOf(begun.requests)) / float64(count)
	m["environments.held"] = float64(held.requests.Count(all))
	b.print("held: %v, then %v", begun.requests, held.requests)
	return b.bring(ctx, newWave(r, slices.Concat(staging, production)...))
}

// nudge changes the objects around Rollouts that are held. The changes say nothing new.
func (b *bench) nudge(ctx context.Context, staging, production []int) error {
	for n := range nudges {
		note := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/looked":"%d"}}}`, n)
		for _, o := range []struct {
			resource resource
			of       []int
		}{
			{rollouts, staging}, {environments, staging}, {rollouts, production}, {environments, production}, {imagePolicies, production},
		} {
			if err := forEach(ctx, namers, len(o.of), func(ctx context.Context, place int) error {
				return b.admin.patch(ctx, o.resource, b.fleet.namespace(o.of[place]), b.fleet.name(o.of[place]), "", "kubectl", note)
			}); err != nil {
				return err
			}
		}
	}
	return nil
}
