// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"time"

	"github.com/fluxrollouts/rollout-controller/internal/background"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// longestReason is how many characters of the reason for a failed fetch are logged.
const longestReason = 1024

// Start fetches until ctx ends. It returns when the last fetch has ended.
func (s *Store) Start(ctx context.Context) error {
	background.Serve(ctx, s.queue, s.serve)
	return nil
}

// plan queues an upstream for the time at which there is something to do.
func (s *Store) plan(u Upstream, k *upstream) {
	if at, ok := k.next(); ok {
		s.queue.AddAfter(u, at.Sub(s.clock.Now()))
	}
}

// serve fetches, if a fetch is due.
func (s *Store) serve(ctx context.Context, u Upstream) {
	began := s.clock.Now()
	k, before := s.begin(u, began)
	if k == nil {
		return
	}
	found := s.fetch(ctx, u, before)
	s.mu.Lock()
	defer s.mu.Unlock()
	k.running = false
	if forgotten := s.upstreams[u] != k; !forgotten && ctx.Err() == nil {
		s.end(u, k, began, found)
	}
}

// begin returns an upstream and the report that is known of it. It returns nil if no fetch
// is due.
func (s *Store) begin(u Upstream, now time.Time) (*upstream, memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.upstreams[u]
	if !s.isDue(u, k, now) {
		return nil, memory{}
	}
	k.running, k.asked, k.once.open, k.seen = true, false, false, version{}
	return k, k.memory
}

// isDue reports whether it is time to fetch. If that is later, it queues the upstream again.
func (s *Store) isDue(u Upstream, k *upstream, now time.Time) bool {
	if k == nil {
		return false
	}
	at, wanted := k.due()
	if wanted && at.After(now) {
		s.plan(u, k)
		return false
	}
	if !wanted && !k.running && len(k.by) == 0 && now.Sub(k.ended) >= keepFor {
		s.drop(u)
		s.admit()
	}
	return wanted
}

// end records what a fetch has found.
func (s *Store) end(u Upstream, k *upstream, began time.Time, f finding) {
	if f.gone {
		if k.asked {
			s.queue.Add(u) // it may be there by now
			return
		}
		s.drop(u)
		s.admit()
		return
	}
	now := s.clock.Now()
	before := k.memory.bytes
	changed, isNew := k.take(began, f)
	changed = changed || before != k.memory.bytes // more of the same report is known
	s.count(u, before, k.memory.bytes)
	s.complain(u, k, f)
	k.pace.end(now, f.outcome(isNew))
	k.ended, k.notBefore = now, now.Add(max(leastPause, f.busyFor))
	if s.answerOnce(k, now) || changed {
		s.wakeEnvironment(u.Environment)
	}
	s.answerLookups(k, began)
	s.plan(u, k)
}

// take stores what a fetch has found. It returns whether the result is another one, and
// whether the report is.
func (k *upstream) take(began time.Time, f finding) (changed, isNew bool) {
	last := k.result
	switch {
	case f.verified:
		isNew = k.memory.digest != f.memory.digest
		k.memory = f.memory
		k.memory.at = began
		k.result.Report, k.result.At = f.memory.report, began
	case f.source != (report.Source{}) && f.source != last.Report.Source:
		k.result = Result{} // it is about another upstream than the one that is asked now
	}
	k.result.Problem = f.problemSince(k.result.At)
	return isNew || k.ended.IsZero() || last.Report.Source != k.result.Report.Source || !same(last.Problem, k.result.Problem), isNew
}

func same(a, b *verdict.Problem) bool { return a == b || a != nil && b != nil && *a == *b }

// answerOnce reports whether the Environment asked for the fetch that has ended. If there
// is a problem, it is fetched again.
func (s *Store) answerOnce(k *upstream, now time.Time) bool {
	if !k.once.asked || k.once.open {
		return false
	}
	k.once.asked = k.result.Problem != nil
	k.once.at = now.Add(k.pace.retry(lastRetry))
	return true
}

// answerLookups wakes the Rollouts that wanted the fetch that has ended.
func (s *Store) answerLookups(k *upstream, began time.Time) {
	for rollout, w := range k.by {
		answered := false
		for at, had := range w {
			if !at.IsZero() && !had && !at.After(began) {
				w[at], answered = true, true
			}
		}
		if answered {
			s.wakeRollout(rollout)
		}
	}
}

// complain logs why the report of an upstream cannot be used, once until it can.
func (s *Store) complain(u Upstream, k *upstream, f finding) {
	if k.result.Problem == nil {
		k.failing = false
		return
	}
	log := s.log.WithValues("environment", u.Environment.String(), "upstream", u.Name)
	if k.failing {
		log = log.V(1)
	}
	k.failing = true
	reason := k.result.Problem.Message
	if f.cause != nil {
		reason = f.cause.Error()
	}
	log.Info("the report of an upstream cannot be used", "reason", truncate.Text(reason, longestReason))
}
