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

// aside reports whether a request is also made at rest: the lease is renewed, watches are
// opened again, and the API server requests its own API and, every few minutes, the
// addresses of Services.
func aside(r controlplane.Request) bool {
	return r.Resource == "leases" || r.Resource == "services" || r.Resource == "" || r.Verb == "WATCH" || r.Subresource == "openapi/v3"
}

// requests returns the requests made so far by clients other than the benchmark. It
// leaves out the requests that are also made at rest.
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

// quiet waits until there were no requests for a while, and returns all requests so far.
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

// cost is the number of the controller's requests and its use of CPU and memory.
type cost struct {
	requests  controlplane.Requests
	cpu       time.Duration
	work      float64 // the CPU time, in milliseconds per millisecond of the pace
	allocated float64 // bytes
}

// costOf returns the cost of something until all is quiet again.
func (b *bench) costOf(ctx context.Context, something func() error) (cost, error) {
	before, err := b.spent(ctx, b.allocated)
	if err != nil {
		return cost{}, err
	}
	began := time.Now()
	if err := something(); err != nil {
		return cost{}, err
	}
	ended := time.Now() // before the rest, in which a machine is faster
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

// spent waits until all is quiet and returns the cost so far. Reading the allocated bytes
// costs CPU time. Therefore it is read before the CPU time or not at all.
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

// allocated returns how many bytes the controller has allocated, including freed ones.
func (b *bench) allocated(ctx context.Context) (float64, error) {
	families, err := scenario.Metrics(ctx, b.program.metrics)
	return scenario.Total(families["go_memstats_alloc_bytes_total"].GetMetric()), err
}

// releaseFor makes the controller promote the next release for some Rollouts at once.
func (b *bench) releaseFor(ctx context.Context, some []int) (*wave, cost, error) {
	return b.promote(ctx, b.publish(), some)
}

// promote makes the controller promote a release for some Rollouts at once.
func (b *bench) promote(ctx context.Context, r release, some []int) (*wave, cost, error) {
	w := newWave(r, some...)
	spent, err := b.costOf(ctx, func() error { return b.bring(ctx, w) })
	return w, spent, err
}

// begin starts the controller and waits until it is ready.
func (b *bench) begin(ctx context.Context) (time.Duration, error) {
	if err := b.start(ctx); err != nil {
		return 0, err
	}
	return b.ready(ctx)
}

// floorAfter stops the controller, makes a bare client perform the writes of a wave like
// the controller's last one, and starts the controller again.
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

// singles releases for one Rollout after the other, while the others rest. It returns how
// long each release took to reach its targets.
func (b *bench) singles(ctx context.Context, n int) ([]time.Duration, error) {
	var all []time.Duration
	for k := range n {
		w := newWave(b.publish(), k*b.rollouts/n)
		if err := b.bring(ctx, w); err != nil {
			return nil, err
		}
		all = append(all, w.latencies()...)
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// restart stops the controller while there is nothing to do, and starts it again. It
// returns how long the controller took to be ready.
func (b *bench) restart(ctx context.Context) (time.Duration, cost, error) {
	if _, err := b.quiet(ctx); err != nil {
		return 0, cost{}, err
	}
	if err := b.halt(ctx); err != nil {
		return 0, cost{}, err
	}
	before, err := b.quiet(ctx) // the event that it has stopped leading may still be on its way
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

// storm makes others write HealthChecks and gates several times. The writes change
// nothing for the Rollouts.
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

// flap changes the message of a HealthCheck but not its status, and an annotation of a
// gate.
func (b *bench) flap(ctx context.Context, i, n int) error {
	if err := b.say(ctx, healthChecks, i, map[string]any{"message": fmt.Sprintf("all %d probes passed", n+1)}); err != nil {
		return err
	}
	note := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/looked":"%d"}}}`, n)
	return b.admin.patch(ctx, gates, b.fleet.namespace(i), b.fleet.name(i), "", "gatekeeper", []byte(note))
}

// protect makes some Rollouts bake from now on, with their HealthChecks.
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

// percentile returns the smallest of the durations that is not less than the given
// percentage of them.
func percentile(all []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)*percent+99)/100-1]
}
