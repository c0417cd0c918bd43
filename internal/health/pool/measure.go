// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"fmt"
	"time"
)

// endWithin is for how long Start waits for cancelled measurements.
const endWithin = 5 * time.Second

// running is a measurement that is under way.
type running struct {
	*plan
	cancel  context.CancelFunc
	dropped bool
}

// isOf reports whether the measurement that is under way is the one that was planned for
// that time. Its result counts.
func (r *running) isOf(due time.Time) bool {
	return r != nil && !r.dropped && r.due.Equal(due)
}

// Start measures until ctx ends. Then it cancels what is under way, and drops the results.
// It returns when all measurements have ended, after 5 s at the latest. The error means
// that some have not.
func (p *Pool) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		p.sleep(ctx, p.begin(ctx))
	}
	return p.end()
}

// begin begins all measurements that are due, as far as the limits allow. It returns when
// the next one is due; zero means that none is planned.
func (p *Pool) begin(ctx context.Context) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	for now := p.clock.Now(); len(p.later) > 0 && !p.later[0].due.After(now); {
		c := p.later[0]
		p.later.remove(c)
		p.backlog.add(c)
	}
	for c := p.backlog.next(p.busy.allows); c != nil; c = p.backlog.next(p.busy.allows) {
		p.launch(ctx, c)
	}
	if len(p.later) == 0 {
		return time.Time{}
	}
	return p.later[0].due
}

// sleep waits until a time, or until something has changed.
func (p *Pool) sleep(ctx context.Context, until time.Time) {
	var passed <-chan time.Time
	if !until.IsZero() {
		timer := p.clock.NewTimer(until.Sub(p.clock.Now()))
		defer timer.Stop()
		passed = timer.C()
		if !until.After(p.clock.Now()) {
			return // it came before the timer began
		}
	}
	select {
	case <-ctx.Done():
	case <-p.changed:
	case <-passed:
	}
}

// launch begins the planned measurement of a HealthCheck.
func (p *Pool) launch(ctx context.Context, c *check) {
	ctx, cancel := context.WithCancel(ctx)
	c.running, c.plan = &running{plan: c.plan, cancel: cancel}, nil
	p.busy.add(c.key.Namespace, c.running.destination, 1)
	go p.measure(ctx, c, c.running)
}

// measure measures, and delivers the result. The measurement is under way until that is
// done. So the one who plans the next one knows the result, or repeats the plan.
func (p *Pool) measure(ctx context.Context, c *check, r *running) {
	defer p.ended(c, r)
	defer func() {
		if cause := recover(); cause != nil {
			p.panicked(c.key, cause)
		}
	}()
	deliver := r.measure(ctx)
	if ctx.Err() == nil && deliver != nil {
		deliver()
	}
}

// ended plans the next measurement of the HealthCheck, or forgets the HealthCheck.
func (p *Pool) ended(c *check, r *running) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.cancel()
	p.busy.add(c.key.Namespace, r.destination, -1)
	if c.running = nil; c.plan == nil {
		delete(p.checks, c.key)
	} else {
		p.later.add(c)
	}
	p.wake()
}

// end waits for what is under way. Its context has ended.
func (p *Pool) end() error {
	timer := p.clock.NewTimer(endWithin)
	defer timer.Stop()
	for n := p.underWay(); n > 0; n = p.underWay() {
		select {
		case <-p.changed:
		case <-timer.C():
			return fmt.Errorf("%d measurements of HealthChecks have not ended", n)
		}
	}
	return nil
}

func (p *Pool) underWay() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy.total
}
