// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
)

// sharing makes one look at a subject serve all HealthChecks that are about it: an
// inventory may be large, and there may be hundreds of HealthChecks.
//
// The verdict is written onto the version of the HealthCheck that was read. A look counts
// for a HealthCheck only if it began after that version was first seen. So the verdict of
// a check after a reset was observed after that reset, whichever check did the look.
//
// No worker waits for the look of another worker: a check that has to wait is put into
// the queue again when the look has ended. So a look that hangs occupies one worker.
//
// Nothing is kept about a subject that no check asks for.
type sharing struct {
	mu     sync.Mutex
	events uint64                                // counts what happens, to know what came first
	seen   map[types.NamespacedName]seenVersion  // by HealthCheck
	looks  map[kustomization.Subject]*sharedLook // by what is looked at
	ended  []endedLook                           // the oldest first
}

// seenVersion is the version of a HealthCheck that was seen last, and since when.
type seenVersion struct {
	version string
	at      uint64
}

// sharedLook is the newest look at a subject, and the checks that wait for its end.
type sharedLook struct {
	running bool
	began   uint64
	finding *health.Finding // nil while it runs, and if it panicked
	changed uint64          // when an event last reported a change
	waiting sets.Set[types.NamespacedName]

	beganAt, beganBefore time.Time // this look, and the one before
	endedAt              time.Time
}

type endedLook struct {
	subject kustomization.Subject
	began   uint64
	at      time.Time
}

// share is the answer to a HealthCheck that asks for a look: either a finding, or the
// order to look itself and to report when the look has ended. If it is neither, the check
// is put into the queue when the look of another check has ended, or asks again after the
// delay.
type share struct {
	finding *health.Finding
	looks   bool
	again   time.Duration // when to ask again in any case; zero means never
}

// saw records that a version of a HealthCheck exists.
func (s *sharing) saw(check types.NamespacedName, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sawLocked(check, version)
}

func (s *sharing) sawLocked(check types.NamespacedName, version string) uint64 {
	known, ok := s.seen[check]
	if ok && known.version == version {
		return known.at
	}
	if s.seen == nil {
		s.seen = map[types.NamespacedName]seenVersion{}
	}
	s.events++
	s.seen[check] = seenVersion{version, s.events}
	return s.events
}

// wrote records that the write of a verdict replaced a version. That is not a reset, and
// no change came between the two versions.
func (s *sharing) wrote(check types.NamespacedName, before, after string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.seen[check]; ok && known.version == before {
		s.seen[check] = seenVersion{after, known.at}
	}
}

// changed records that a subject, or an object in its inventory, has changed.
func (s *sharing) changed(subject kustomization.Subject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if look := s.looks[subject]; look != nil {
		s.events++
		look.changed = s.events
	}
}

// forget drops the state of a HealthCheck.
func (s *sharing) forget(check types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, check)
}

// ask returns the answer for a version of a HealthCheck.
func (s *sharing) ask(check types.NamespacedName, version string, subject kustomization.Subject, now time.Time) share {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked(now)
	seen := s.sawLocked(check, version)
	look := s.looks[subject]
	switch {
	case look == nil:
	case look.running:
		look.waiting.Insert(check)
		return share{}
	case look.began > seen && look.isCurrent(now):
		return share{finding: look.finding}
	case look.began > seen && look.isOfThisPace(now):
		return share{finding: look.finding, again: remaining(look.beganAt, evaluationPace, now)}
	case isWithinPace(look.beganBefore, now):
		return share{again: remaining(look.beganBefore, evaluationPace, now)}
	}
	s.beginLocked(subject, now)
	return share{looks: true}
}

// isCurrent reports whether the finding is recent and no event has come since it began.
func (l *sharedLook) isCurrent(now time.Time) bool {
	return l.finding != nil && l.began > l.changed && isWithinPace(l.endedAt, now)
}

// isOfThisPace reports whether it is too early to look again because of an event.
func (l *sharedLook) isOfThisPace(now time.Time) bool {
	return l.finding != nil && isWithinPace(l.beganAt, now)
}

// isWithinPace reports false also when the clock was set back.
func isWithinPace(since, now time.Time) bool {
	age := now.Sub(since)
	return age >= 0 && age < evaluationPace
}

func (s *sharing) beginLocked(subject kustomization.Subject, now time.Time) {
	look := s.looks[subject]
	if look == nil {
		if s.looks == nil {
			s.looks = map[kustomization.Subject]*sharedLook{}
		}
		look = &sharedLook{}
		s.looks[subject] = look
	}
	s.events++
	look.running, look.began, look.finding = true, s.events, nil
	look.beganAt, look.beganBefore = now, look.beganAt
	look.waiting = sets.New[types.NamespacedName]()
}

// end stores the finding of a look, and returns the HealthChecks that wait for it. If the
// finding is nil, they have to look themselves.
func (s *sharing) end(subject kustomization.Subject, finding *health.Finding, now time.Time) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	look := s.looks[subject]
	waiting := look.waiting.UnsortedList()
	look.running, look.finding, look.endedAt, look.waiting = false, finding, now, nil
	s.ended = append(s.ended, endedLook{subject, look.began, now})
	s.dropLocked(now)
	return waiting
}

// dropLocked drops looks that no check may use any more.
func (s *sharing) dropLocked(now time.Time) {
	for len(s.ended) > 0 && !isWithinPace(s.ended[0].at, now) {
		oldest := s.ended[0]
		s.ended = s.ended[1:]
		if look := s.looks[oldest.subject]; look != nil && !look.running && look.began == oldest.began {
			delete(s.looks, oldest.subject)
		}
	}
}

// untilNext returns how long an event of a subject waits for its own look; zero if
// there was no look recently.
func (s *sharing) untilNext(subject kustomization.Subject, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	look := s.looks[subject]
	if look == nil {
		return 0
	}
	return remaining(look.beganAt, evaluationPace, now)
}
