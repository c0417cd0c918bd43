// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/activity"
	"github.com/fluxrollouts/rollout-controller/internal/health/class"
	"github.com/fluxrollouts/rollout-controller/internal/health/measure"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
)

// states contains what is known of each HealthCheck. After a restart it is empty.
type states struct {
	mu  sync.Mutex
	all map[types.NamespacedName]*state
}

func (s *states) of(check types.NamespacedName) *state {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[types.NamespacedName]*state{}
	}
	if s.all[check] == nil {
		s.all[check] = &state{}
	}
	return s.all[check]
}

func (s *states) has(check types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[check] != nil
}

func (s *states) forget(check types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, check)
}

// state is what is known of one HealthCheck. Only its passes use it, one at a time, except
// for the result.
type state struct {
	uid        types.UID
	generation int64
	probe      *class.Probe
	problem    string // of the spec

	known time.Time // when this process saw the HealthCheck first
	reset time.Time // when it was reset last
	// stamped is what the status says of that. It may be by a clock that is ahead.
	stamped time.Time
	count   measure.Count
	query   string
	// release is what the last measurement was about.
	release *v1alpha1.MeasuredRelease
	found   string    // the problem that the last measurement has found
	began   time.Time // when the last measurement since the reset began
	wrote   time.Time // when the status was written last
	// era counts the starts. What was measured in an earlier one does not count.
	era int
	// tried is when the last measurement began, whether it counts or not.
	tried time.Time
	// replaced is true if the status has had another message than that of the reset since.
	replaced bool

	mu     sync.Mutex
	result *result
	// delivered counts the results, and taken those that a pass has taken in.
	delivered, taken int
}

// result is a measurement, the era in which it was planned, and the release that it is about.
type result struct {
	class.Result
	era     int
	release *v1alpha1.MeasuredRelease
}

// see takes in what has changed in a HealthCheck: its spec, or that it was reset.
func (s *state) see(check *v1alpha1.HealthCheck, means class.Means, now time.Time) {
	switch isNew, changed := s.uid != check.UID, s.generation != check.Generation; {
	case isNew:
		s.known, s.found, s.query, s.wrote = now, "", "", time.Time{}
		s.wasReset(time.Time{}, now)
		s.start(measure.AfterRestart, check, now)
		if check.Status.ObservedGeneration != 0 && check.Status.ObservedGeneration != check.Generation {
			s.start(measure.AfterChange, check, now)
		}
	case changed:
		s.start(measure.AfterChange, check, now)
	}
	s.seeReset(check, now)
	if s.uid != check.UID || s.generation != check.Generation {
		s.compile(check, means)
	}
}

// seeReset takes in that a HealthCheck was reset. Two resets may be of the same second:
// then the status has said something else in between.
func (s *state) seeReset(check *v1alpha1.HealthCheck, now time.Time) {
	switch at := resetAt(check); {
	case at.IsZero():
		s.replaced = true
	case s.replaced || !at.Equal(s.stamped):
		s.start(measure.AfterReset, check, now)
		s.wasReset(at, now)
		s.replaced = false
	}
}

// wasReset takes in when the HealthCheck was reset. A time that is still to come counts as now.
func (s *state) wasReset(at, now time.Time) {
	if s.stamped, s.reset = at, at; at.After(now) {
		s.reset = now
	}
}

// start counts anew. After a restart, it is not known when the HealthCheck was reset. A
// later time stands for that.
func (s *state) start(why measure.Start, check *v1alpha1.HealthCheck, now time.Time) {
	status := &check.Status
	stored := measure.Stored{Status: status.Status, Measurements: status.Measurements}
	if !check.IsClass(v1alpha1.HealthCheckClassJob) { // whose Jobs are found again, one after the other
		stored.Totals = measure.Totals{Good: int(status.Good), Bad: int(status.Bad)}
	}
	if status.Message != nil {
		stored.Message = *status.Message
	}
	s.count, s.began, s.found = measure.NewCount(why, stored, now), time.Time{}, ""
	s.era++
	if why == measure.AfterRestart {
		s.wasReset(afterReset(status), now)
	}
}

// afterReset returns the earliest time in a status that is not before the last reset, which
// removes all measurements. It is zero if there is none.
func afterReset(status *v1alpha1.HealthCheckStatus) time.Time {
	if status.LastChangeTime == nil {
		return time.Time{}
	}
	at := status.LastChangeTime.Time
	if n := len(status.Measurements); n > 0 && status.Measurements[n-1].At.Time.Before(at) {
		return status.Measurements[n-1].At.Time
	}
	return at
}

// resetAt returns when the HealthCheck was reset, if nothing has been written to its status
// since. Otherwise it is zero.
func resetAt(check *v1alpha1.HealthCheck) time.Time {
	s := &check.Status
	if s.Status != v1alpha1.HealthStatusPending || s.Message == nil || *s.Message != evidence.ResetMessage || s.LastChangeTime == nil {
		return time.Time{}
	}
	return s.LastChangeTime.Time
}

func (s *state) compile(check *v1alpha1.HealthCheck, means class.Means) {
	var err error
	s.uid, s.generation, s.problem = check.UID, check.Generation, ""
	if s.probe, err = means.Compile(check); err != nil {
		s.problem = err.Error()
	}
}

// shared is the problem of a HealthCheck that several Rollouts have reset, although its
// result depends on which of them it is measured for.
const shared = "several Rollouts select it, and its result depends on the release of one of them: give each Rollout a HealthCheck of its own"

// problemNow returns why the HealthCheck cannot be measured as it is. A problem that a
// measurement has found, such as a Service that does not exist, may have ended meanwhile.
// So it does not end the measurements.
func (s *state) problemNow(subject *subject) string {
	switch {
	case s.problem != "":
		return s.problem
	case subject.shared() && s.probe.UsesRelease:
		return shared
	}
	return ""
}

// advance takes in the last measurement, and returns what follows. A result is
// forgotten when nothing is measured any more: its end would not be noticed, and it would
// hold promotions back forever.
func (s *state) advance(check *v1alpha1.HealthCheck, subject *subject, now time.Time) decision {
	d := decision{problem: s.problemNow(subject), count: s.count, began: s.began, query: s.query, found: s.found, release: s.release}
	if r := s.take(); r != nil && d.problem == "" {
		d.add(r, s.probe.Spec)
	}
	d.next = activity.Decide(activity.Input{
		UID: check.UID, Spec: s.probe.Spec, Problem: d.problem, Found: d.found != "", Status: check.Status.Status,
		Promotion: subject.promotion, Elsewhere: subject.elsewhere, UsesRelease: s.probe.UsesRelease, Reset: s.reset, Last: d.count.LastMeasured(), Ended: d.count.Ended(s.probe.Spec), Known: s.known,
	}).After(s.tried)
	if d.next.At.IsZero() {
		d.found = ""
	}
	d.verdict = d.judge(s.probe.Spec, now)
	return d
}

// add takes in a measurement.
func (d *decision) add(r *result, spec measure.Spec) {
	d.count, d.began, d.query, d.found, d.release = d.count.Add(r.Measurement, spec), r.At, r.Query, r.Problem, r.release
}

// accept makes a decision what is known.
func (s *state) accept(d decision) {
	s.count, s.began, s.query, s.found, s.release = d.count, d.began, d.query, d.found, d.release
}

func (s *state) deliver(r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result = &r
	s.delivered++
}

// isOutdated reports whether there is a result that the pass which took in so many did not
// know. What it has planned must not be measured: it may be what was measured already. The
// pass that takes in the result plans anew.
func (s *state) isOutdated(taken int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.delivered != taken
}

// take returns the last measurement; nil if there is none, or if the HealthCheck was reset
// or changed while it was under way: then it may be about the release before.
func (s *state) take() *result {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.result
	s.taken = s.delivered
	if s.result = nil; r == nil {
		return nil
	}
	if s.tried = r.At; r.era != s.era {
		return nil
	}
	return r
}
