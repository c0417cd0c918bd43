// SPDX-License-Identifier: Apache-2.0

// Package pool measures HealthChecks when they are due. No reconciler waits for a
// measurement: it plans one, and is woken by the result.
//
//	pool.go     what is planned, by HealthCheck
//	measure.go  one measurement, from its beginning to its result
//	backlog.go  which of the HealthChecks that are due is next
//	queue.go    HealthChecks in the order in which they are due
package pool

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// Measure measures once, and returns what to do with the result: usually to store it and
// to wake a reconciler. The pool does that unless the result no longer counts. Measure
// must limit its own time, and return soon after ctx ends.
type Measure func(ctx context.Context) (deliver func())

// Pool contains one planned measurement for each HealthCheck. A measurement that cannot
// begin when it is due begins later. It is neither repeated nor left out. Create it with
// New.
type Pool struct {
	clock    clock.Clock
	panicked func(check types.NamespacedName, cause any)
	changed  chan struct{} // contains a value if Start has something to look at

	mu      sync.Mutex
	checks  map[types.NamespacedName]*check
	planned uint64  // counts the plans that were made
	later   queue   // what is not due yet
	backlog backlog // what is due
	busy    busy
}

// check is a HealthCheck that is planned, or is being measured, or both.
type check struct {
	key types.NamespacedName
	*plan
	running *running

	in *queue // the queue that the check is in; nil if it is in none
	at int    // its place in that queue
}

// plan is a measurement that has not begun.
type plan struct {
	destination string
	due         time.Time
	order       uint64 // of two that are due at the same time, the one that was planned first begins
	measure     Measure
}

// New returns a pool that measures nothing before Start, and then as many HealthChecks at
// a time as there are workers. If a measurement panics, panicked is called with the cause,
// and there is no result.
func New(clock clock.Clock, workers int, panicked func(check types.NamespacedName, cause any)) *Pool {
	return &Pool{
		clock: clock, panicked: panicked, changed: make(chan struct{}, 1),
		checks:  map[types.NamespacedName]*check{},
		backlog: backlog{of: map[string]map[string]*queue{}},
		busy:    newBusy(workers),
	}
}

// Schedule plans the next measurement of a HealthCheck, in place of the one that was
// planned before. A time that has passed means at once. The destination is what is asked,
// for example a host and port: only a few measurements of one are made at a time.
//
// If a measurement is under way, the next one begins after its end. The one under way is
// the planned one if it was due at the same time: then nothing is planned. So a caller may
// repeat a plan as often as it likes until it has the result.
func (p *Pool) Schedule(key types.NamespacedName, destination string, due time.Time, measure Measure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.checks[key]
	if c == nil {
		c = &check{key: key}
		p.checks[key] = c
	}
	p.unplan(c)
	if c.running.isOf(due) {
		return
	}
	p.planned++
	c.plan = &plan{destination, due, p.planned, measure}
	if c.running == nil {
		p.later.add(c)
	}
	p.wake()
}

// Drop forgets a HealthCheck. A measurement that is under way is cancelled, and its result
// is dropped, unless it is being delivered already.
func (p *Pool) Drop(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.checks[key]
	if c == nil {
		return
	}
	p.unplan(c)
	if c.running == nil {
		delete(p.checks, key)
		return
	}
	c.running.dropped = true
	c.running.cancel()
}

// Lag returns for how long the measurement that waits longest has been due. It is 0 if
// none waits.
func (p *Pool) Lag() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, lag := p.clock.Now(), time.Duration(0)
	if len(p.later) > 0 {
		lag = now.Sub(p.later[0].due)
	}
	for c := range p.backlog.first() {
		lag = max(lag, now.Sub(c.due))
	}
	return max(lag, 0)
}

// Len returns how many HealthChecks are planned or being measured.
func (p *Pool) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.checks)
}

// unplan removes the planned measurement.
func (p *Pool) unplan(c *check) {
	switch {
	case c.in == &p.later:
		p.later.remove(c)
	case c.in != nil:
		p.backlog.remove(c)
	}
	c.plan = nil
}

// wake makes Start look at what has changed.
func (p *Pool) wake() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}
