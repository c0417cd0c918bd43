// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	mostStreams = 4 // a browser has six connections for this server
	beats       = 15 * time.Second
	joins       = 250 * time.Millisecond
)

// streams ends the oldest one where there are too many.
type streams struct {
	mu   sync.Mutex
	ends []*context.CancelFunc
}

// enter returns the context of a new stream, and what to call at its end.
func (s *streams) enter(ctx context.Context) (context.Context, func()) {
	ctx, end := context.WithCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = append(s.ends, &end)
	if len(s.ends) > mostStreams {
		(*s.ends[0])()
		s.ends = s.ends[1:]
	}
	return ctx, func() {
		end()
		s.mu.Lock()
		defer s.mu.Unlock()
		for i := range s.ends {
			if s.ends[i] == &end {
				s.ends = append(s.ends[:i:i], s.ends[i+1:]...)
				return
			}
		}
	}
}

// stream sends changes of rows after the revision that the tab has.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	ctx, end := s.streams.enter(r.Context())
	defer end()
	w.Header().Set("Content-Type", "text/event-stream")
	to := sender{w, http.NewResponseController(w), s.Now}
	_ = to.control.SetReadDeadline(time.Time{}) // the request has been read: only its end is to come
	revision := r.Header.Get("Last-Event-ID")
	for {
		frame, now, next, ok := s.Board.After(revision)
		var err error
		switch {
		case !ok:
			_ = to.send("event: reset\nid: %s\n\n", now) // the tab reads all and comes again
			return
		case revision != now:
			err = to.rows(now, frame)
		default:
			err = to.send(": beat\n\n")
		}
		if revision = now; err != nil || !wait(ctx, next) {
			return
		}
	}
}

// wait returns after the next change, and what follows it at once, or when it is time for a
// beat. It returns false at the end of the stream.
func wait(ctx context.Context, next <-chan struct{}) bool {
	beat := time.NewTimer(beats)
	defer beat.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-beat.C:
		return true
	case <-next:
	}
	join := time.NewTimer(joins)
	defer join.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-join.C:
		return true
	}
}

// sender writes to a client, which is dropped if it does not read.
type sender struct {
	w       http.ResponseWriter
	control *http.ResponseController
	now     func() time.Time
}

func (s sender) rows(revision string, f Frame) error {
	data, err := json.Marshal(struct {
		Now time.Time `json:"now"`
		Frame
	}{s.now().UTC(), f})
	if err != nil {
		return err
	}
	return s.send("id: %s\nevent: rows\ndata: %s\n\n", revision, data)
}

func (s sender) send(format string, args ...any) error {
	if err := s.control.SetWriteDeadline(s.now().Add(slow)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.w, format, args...); err != nil {
		return err
	}
	return s.control.Flush()
}
