// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// errCut is the cause of the end of a watch that the wire cut.
var errCut = errors.New("cut")

// watch is an open watch.
type watch struct {
	Request
	cut context.CancelCauseFunc

	mu  sync.Mutex
	out http.ResponseWriter
	// whole is true if the data that was forwarded so far ends with an event.
	whole bool
	over  bool
}

// Header implements http.ResponseWriter.
func (s *watch) Header() http.Header { return s.out.Header() }

// WriteHeader implements http.ResponseWriter.
func (s *watch) WriteHeader(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole = code == http.StatusOK && strings.HasPrefix(s.out.Header().Get("Content-Type"), "application/json")
	s.out.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (s *watch) Write(events []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return 0, errCut
	}
	if json := strings.HasPrefix(s.out.Header().Get("Content-Type"), "application/json"); json && len(events) > 0 {
		s.whole = events[len(events)-1] == '\n'
	}
	return s.out.Write(events)
}

// FlushError flushes the written data.
func (s *watch) FlushError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return http.NewResponseController(s.out).Flush()
}

// end cuts the watch. If expired is set, its last event reports that the version from
// which it watches is too old.
func (s *watch) end(expired bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if expired && s.whole && !s.over {
		_ = json.NewEncoder(s.out).Encode(map[string]any{
			"type": "ERROR", "object": status(http.StatusGone, "injected: too old resource version"),
		})
		_ = http.NewResponseController(s.out).Flush()
	}
	s.over = true
	s.cut(errCut)
}

// CutWatches breaks every open watch without a proper end, and returns how many there
// were.
func (w *Wire) CutWatches() int { return w.endWatches(false) }

// ExpireWatches ends every open watch with an event that the version from which it
// watches is too old. The client must then list again. It returns how many watches there
// were.
func (w *Wire) ExpireWatches() int { return w.endWatches(true) }

func (w *Wire) endWatches(expired bool) int {
	w.mu.Lock()
	open := slices.Collect(maps.Keys(w.watches))
	w.mu.Unlock()
	for _, s := range open {
		s.end(expired)
	}
	return len(open)
}

// BreakConnections closes every connection, including those with requests in progress.
func (w *Wire) BreakConnections() { w.server.CloseClientConnections() }

// RefuseWatches breaks every open watch, and each that a client opens, until
// AllowWatches.
func (w *Wire) RefuseWatches() int {
	w.mu.Lock()
	w.noWatch = true
	w.mu.Unlock()
	return w.CutWatches()
}

// HoldWatches breaks every open watch. Each watch that a client opens waits without a
// response until AllowWatches, and continues then.
func (w *Wire) HoldWatches() int {
	w.mu.Lock()
	if w.held == nil {
		w.held = make(chan struct{})
	}
	w.mu.Unlock()
	return w.CutWatches()
}

// AllowWatches ends the effect of RefuseWatches or HoldWatches.
func (w *Wire) AllowWatches() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noWatch = false
	if w.held != nil {
		close(w.held)
		w.held = nil
	}
}

// OpenWatches counts the watches that are open.
func (w *Wire) OpenWatches() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.watches)
}

// open registers a watch, unless watches are refused. After HoldWatches it waits until
// watches are allowed.
func (w *Wire) open(ctx context.Context, s *watch) bool {
	for {
		opened, held := w.tryOpen(s)
		if held == nil {
			return opened
		}
		select {
		case <-held:
		case <-ctx.Done():
			return false
		}
	}
}

func (w *Wire) tryOpen(s *watch) (opened bool, held <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.noWatch || w.held != nil {
		return false, w.held
	}
	w.watches[s] = true
	return true, nil
}

func (w *Wire) closed(s *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.watches, s)
}

// pause waits for a time, or until the context ends.
func pause(ctx context.Context, wait time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(wait):
	}
}
