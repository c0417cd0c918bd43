// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	mostStreams      = 4 // of a session: a browser has six connections for this server
	mostStreamsOfAll = 500
	beats            = 15 * time.Second
	joins            = 250 * time.Millisecond
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
func (s *Server) stream(w http.ResponseWriter, r *http.Request, v *Viewer) {
	defer s.following.Add(-1)
	if s.following.Add(1) > mostStreamsOfAll {
		refuse(w, http.StatusServiceUnavailable, "too many pages are open")
		return
	}
	if _, err := v.Sight(r.Context()); err != nil {
		reply(w, nil, err)
		return
	}
	s.follow(w, r, v)
}

// follow sends until the tab or the session ends.
func (s *Server) follow(w http.ResponseWriter, r *http.Request, v *Viewer) {
	ctx, end := v.streams.enter(r.Context())
	defer end()
	w.Header().Set("Content-Type", "text/event-stream")
	to := sender{w, http.NewResponseController(w), s.Now}
	_ = to.control.SetReadDeadline(time.Time{}) // the request has been read: only its end is to come
	f := follower{Server: s, sender: to, viewer: v, revision: r.Header.Get("Last-Event-ID")}
	f.had = f.revision
	for {
		if _, err := s.Authenticator.Viewer(r, s.Now()); err != nil {
			_ = to.send("event: end\n\n") // the tab logs in again
			return
		}
		next, err := f.step(ctx)
		if apierrors.IsUnauthorized(err) {
			_ = to.send("event: end\n\n")
		}
		if err != nil || !wait(ctx, next) {
			return
		}
	}
}

// follower is a stream, and what its client has.
type follower struct {
	*Server
	sender
	viewer   *Viewer
	revision string
	// had is the revision that the client knows of, when it was told, and how rows were read.
	had     string
	at      time.Time
	reading Reading
}

// errReset ends a stream whose client reads all again.
var errReset = errors.New("changes are not known any more")

// step sends what has changed, or a beat if it is time for one. It returns what is closed at
// the next change.
//
// Changes that are not seen send nothing: only the next beat has their revision.
func (f *follower) step(ctx context.Context) (<-chan struct{}, error) {
	seen, err := f.viewer.Sight(ctx)
	if err != nil {
		return nil, err
	}
	frame, now, next, ok := f.Board.After(f.revision, seen)
	if !ok {
		_ = f.send("event: reset\nid: %s\n\n", now)
		return nil, errReset
	}
	f.revision = now
	due := f.Now().Sub(f.at) >= beats
	switch news := len(frame.Set)+len(frame.Gone) > 0 || !due && frame.Reading != f.reading; {
	case news, due && now != f.had:
		err = f.rows(now, frame)
	case due:
		err = f.send(": beat\n\n")
	default:
		return next, nil
	}
	f.had, f.at, f.reading = now, f.Now(), frame.Reading
	return next, err
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
