// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"sync"
	"time"

	"k8s.io/utils/lru"

	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// Windows remembers the state of schedules until it changes, because each pass of each
// Rollout depends on it. Of many schedules it knows those that were used last. The zero
// value is ready to use.
type Windows struct {
	mu    sync.Mutex
	known *lru.Cache
}

// mostWindows is how many windows are known. One takes less than a kilobyte.
const mostWindows = 4096

// knownWindow is the state of one generation of a schedule since a time, until the window
// says that it changes.
type knownWindow struct {
	generation int64
	since      time.Time
	window     promotion.Window
}

func (k knownWindow) holds(generation int64, now time.Time) bool {
	return k.generation == generation && !now.Before(k.since) && (k.window.Until.IsZero() || now.Before(k.window.Until))
}

// of returns the state of a schedule. Schedules of a file have no UID and are evaluated
// each time, as all are if w is nil.
func (w *Windows) of(s Schedule, now time.Time) promotion.Window {
	if w == nil || s.GetUID() == "" {
		return s.Window(now)
	}
	if known, ok := w.lookup(s); ok && known.holds(s.GetGeneration(), now) {
		return known.window
	}
	window := s.Window(now) // unlocked: several passes may evaluate it at first
	w.remember(s, knownWindow{s.GetGeneration(), now, window})
	return window
}

func (w *Windows) lookup(s Schedule) (knownWindow, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known == nil {
		return knownWindow{}, false
	}
	found, ok := w.known.Get(s.GetUID())
	if !ok {
		return knownWindow{}, false
	}
	return found.(knownWindow), true
}

func (w *Windows) remember(s Schedule, known knownWindow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known == nil {
		w.known = lru.New(mostWindows)
	}
	w.known.Add(s.GetUID(), known)
}
