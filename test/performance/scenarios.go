// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// aside reports whether a request is made at rest as well: the lease is renewed,
// watches are opened anew, and the API server asks itself about its own API, and
// every few minutes about the addresses of Services.
func aside(r controlplane.Request) bool {
	return r.Resource == "leases" || r.Resource == "services" || r.Resource == "" || r.Verb == "WATCH" || r.Subresource == "openapi/v3"
}

// requests are those made so far by others than the harness, without those aside.
func (b *bench) requests(ctx context.Context) (controlplane.Requests, error) {
	all, err := b.plane.Requests(ctx)
	if err != nil {
		return nil, err
	}
	others := all.Since(b.admin.sent())
	for request := range others {
		if aside(request) {
			delete(others, request)
		}
	}
	return others, nil
}

// quiet waits until nobody has asked anything for a while, and returns all
// requests so far.
func (b *bench) quiet(ctx context.Context) (controlplane.Requests, error) {
	before, err := b.requests(ctx)
	for since := time.Now(); err == nil && time.Since(since) < b.calm; {
		if err := pause(ctx, b.calm/4); err != nil {
			return nil, err
		}
		var now controlplane.Requests
		if now, err = b.requests(ctx); len(now.Since(before)) > 0 {
			before, since = now, time.Now()
		}
	}
	return before, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// cost is what the controller has asked for and used.
type cost struct {
	requests  controlplane.Requests
	cpu       time.Duration
	work      float64 // the CPU time, in milliseconds per millisecond of the pace
	allocated float64 // bytes
}

// costOf returns what something costs, until all is quiet again.
func (b *bench) costOf(ctx context.Context, something func() error) (cost, error) {
	before, err := b.spent(ctx, b.allocated)
	if err != nil {
		return cost{}, err
	}
	began := time.Now()
	if err := something(); err != nil {
		return cost{}, err
	}
	ended := time.Now() // a machine at rest is faster
	after, err := b.spent(ctx, nil)
	if err != nil {
		return cost{}, err
	}
	pace, err := b.pacer.Between(began, ended)
	if err != nil {
		return cost{}, err
	}
	after.allocated, err = b.allocated(ctx)
	return after.since(before, pace), err
}

// spent is the cost of all so far, when it is quiet. To ask how much was allocated
// costs something itself, so it is asked first or not.
func (b *bench) spent(ctx context.Context, allocated func(context.Context) (float64, error)) (c cost, err error) {
	if c.requests, err = b.quiet(ctx); err != nil {
		return c, err
	}
	if allocated != nil {
		if c.allocated, err = allocated(ctx); err != nil {
			return c, err
		}
	}
	c.cpu, err = cpuOf(b.program.PID())
	return c, err
}

// allocated is how many bytes the controller has allocated, those included that
// were freed.
func (b *bench) allocated(ctx context.Context) (float64, error) {
	families, err := scenario.Metrics(ctx, b.program.metrics)
	return scenario.Total(families["go_memstats_alloc_bytes_total"].GetMetric()), err
}

// releaseFor has the controller promote a release for some Rollouts at once.
func (b *bench) releaseFor(ctx context.Context, some []int) (*wave, cost, error) {
	w := newWave(b.publish(), some...)
	spent, err := b.costOf(ctx, func() error {
		b.observer.follow(w)
		if err := b.name(ctx, w, func(int) {}); err != nil {
			return err
		}
		return b.converge(ctx, w)
	})
	return w, spent, err
}

// begin starts the controller, and waits until it is ready.
func (b *bench) begin(ctx context.Context) (time.Duration, error) {
	if err := b.start(ctx); err != nil {
		return 0, err
	}
	return b.ready(ctx)
}

// floorAfter stops the controller, has a bare client make the writes of a wave
// like the controller's last one, and starts the controller again.
func (b *bench) floorAfter(ctx context.Context, last *wave) (*wave, error) {
	recorded, err := b.record(ctx, last)
	if err != nil {
		return nil, err
	}
	if b.bare == nil {
		if b.bare, err = b.floorAPI(ctx); err != nil {
			return nil, err
		}
	}
	if err := b.halt(ctx); err != nil {
		return nil, err
	}
	w, err := b.runFloor(ctx, b.bare, recorded)
	if err != nil {
		return nil, err
	}
	_, err = b.begin(ctx)
	return w, err
}

// halt stops the controller as Kubernetes does.
func (b *bench) halt(ctx context.Context) error { return b.program.Stop(ctx) }

// singles releases for one Rollout after the other, while the others rest, and
// returns how long each took to get into its targets.
func (b *bench) singles(ctx context.Context, n int) ([]time.Duration, error) {
	var all []time.Duration
	for k := range n {
		w := newWave(b.publish(), k*b.rollouts/n)
		b.observer.follow(w)
		if err := b.name(ctx, w, func(int) {}); err != nil {
			return nil, err
		}
		if err := b.converge(ctx, w); err != nil {
			return nil, err
		}
		all = append(all, w.latencies()...)
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// restart stops the controller while everything is as it should be, and starts
// it again. It returns how long it took to be ready.
func (b *bench) restart(ctx context.Context) (time.Duration, cost, error) {
	if _, err := b.quiet(ctx); err != nil {
		return 0, cost{}, err
	}
	if err := b.halt(ctx); err != nil {
		return 0, cost{}, err
	}
	before, err := b.quiet(ctx) // what tells that it has stopped leading may be on its way
	if err != nil {
		return 0, cost{}, err
	}
	took, err := b.begin(ctx)
	if err != nil {
		return 0, cost{}, err
	}
	after, err := b.quiet(ctx)
	if err != nil {
		return 0, cost{}, err
	}
	used, err := cpuOf(b.program.PID())
	return took, cost{requests: after.Since(before), cpu: used}, err
}

// storm has others write HealthChecks and gates, a number of times each, in ways
// that change nothing for the Rollouts.
func (b *bench) storm(ctx context.Context, some []int, times int) (cost, error) {
	if err := forEach(ctx, namers, len(some), func(ctx context.Context, place int) error { return b.createGate(ctx, some[place]) }); err != nil {
		return cost{}, err
	}
	return b.costOf(ctx, func() error {
		for n := range times {
			if err := forEach(ctx, namers, len(some), func(ctx context.Context, place int) error { return b.flap(ctx, some[place], n) }); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *bench) createGate(ctx context.Context, i int) error {
	return b.admin.create(ctx, gates, b.fleet.namespace(i), b.fleet.gate(i))
}

// flap has the writer of a HealthCheck say the same in other words, and that of a
// gate note when it looked.
func (b *bench) flap(ctx context.Context, i, n int) error {
	if err := b.say(ctx, healthChecks, i, map[string]any{"message": fmt.Sprintf("all %d probes passed", n+1)}); err != nil {
		return err
	}
	note := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/looked":"%d"}}}`, n)
	return b.admin.patch(ctx, gates, b.fleet.namespace(i), b.fleet.name(i), "", "gatekeeper", []byte(note))
}

// protect has some Rollouts bake from now on, under their HealthChecks.
func (b *bench) protect(ctx context.Context, some []int, bake time.Duration) error {
	return forEach(ctx, namers, len(some), func(ctx context.Context, place int) error {
		i := some[place]
		body, err := specPatch(b.fleet.rollout(i, bake).Spec)
		if err != nil {
			return err
		}
		return b.admin.patch(ctx, rollouts, b.fleet.namespace(i), b.fleet.name(i), "", "kustomize-controller", body)
	})
}

// percentile is the least of the durations that so many percent of them do not
// exceed.
func percentile(all []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)*percent+99)/100-1]
}
