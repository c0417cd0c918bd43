// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/internal/background"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// Start stores reports until ctx ends. It returns when the last request has ended.
func (p *Publisher) Start(ctx context.Context) error {
	background.Serve(ctx, p.queue, p.serve)
	return nil
}

func (p *Publisher) serve(ctx context.Context, key types.NamespacedName) {
	s, due := p.begin(key)
	if !due {
		return
	}
	o := p.attempt(ctx, &s)
	if ctx.Err() == nil {
		p.end(key, &s, o)
	}
}

// begin returns the state of an Environment, if an attempt is due.
func (p *Publisher) begin(key types.NamespacedName) (subject, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.subjects[key]
	if s == nil || s.wanted == nil || s.isStored() {
		p.remind(key, s)
		return subject{}, false
	}
	if wait := s.due().Sub(p.clock.Now()); wait > 0 {
		p.queue.AddAfter(key, wait)
		return subject{}, false
	}
	p.attempted[key] = true
	return *s, true
}

// remind wakes an Environment whose place is to be compared: what it says is kept by its
// reconciler.
func (p *Publisher) remind(key types.NamespacedName, s *subject) {
	if s != nil && s.wanted == nil && !s.compare.IsZero() && !p.clock.Now().Before(s.compare) {
		s.comparing = true
		p.wake(key)
	}
}

// end records how an attempt ended. If the Environment says something else by now, there
// is another one.
func (p *Publisher) end(key types.NamespacedName, began *subject, o outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.attempted, key)
	s := p.subjects[key]
	if s == nil {
		return // forgotten
	}
	before := s.problem
	s.conclude(began, o, p.clock.Now())
	p.note(key, before, s.problem, o)
	p.plan(key, s)
	if !equality.Semantic.DeepEqual(s.shown, s.publication()) {
		p.wake(key)
	}
}

// note logs the whole error when a problem begins. Later attempts are only logged for
// those who look for them.
func (p *Publisher) note(key types.NamespacedName, before, after *verdict.Problem, o outcome) {
	log := p.log.WithValues("environment", key.String())
	switch {
	case o.stored != nil:
		log.V(1).Info("a report is published", "report", o.stored.Reference, "sequence", o.stored.Sequence)
	case o.err != nil && before != after:
		log.Info("a report cannot be published", "reason", o.reason())
	case o.err != nil:
		log.V(1).Info("a report still cannot be published", "reason", o.reason())
	}
}
