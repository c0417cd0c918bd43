// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

// Everybody in the cluster can call the webhook, and its process does other work as
// well. So what all calls together may ask of its memory has a limit. Whoever goes
// beyond it gets an error, upon which the API server stores what it was given.
const (
	// maxBody is the size of a call: about two objects of the largest size that the
	// API server stores.
	maxBody = 3 << 20
	// maxCalls is how many are answered at a time; it takes a millisecond.
	maxCalls = 4
	// maxWaiting is how many wait for that.
	maxWaiting = 64
	// callTimeout is how long the API server waits for an answer.
	callTimeout = 2 * time.Second
)

// limited answers no more than a few calls at a time, and none that are large.
type limited struct {
	next    http.Handler
	calls   chan struct{}
	waiting chan struct{}
	timeout time.Duration
}

func limit(next http.Handler) *limited {
	return &limited{next: next, calls: make(chan struct{}, maxCalls), waiting: make(chan struct{}, maxWaiting), timeout: callTimeout}
}

// ServeHTTP answers a call, or says why not.
func (l *limited) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength < 0 || r.ContentLength > maxBody {
		http.Error(w, "the call is too large, or does not say how large it is", http.StatusRequestEntityTooLarge)
		return
	}
	if !l.enter(r) {
		http.Error(w, "too many calls at a time", http.StatusServiceUnavailable)
		return
	}
	defer func() { <-l.calls }()
	// Nobody keeps others out by sending slowly. Connections know no time but the real one.
	_ = http.NewResponseController(w).SetReadDeadline(clock.RealClock{}.Now().Add(l.timeout))
	l.next.ServeHTTP(w, r)
}

// enter waits for a place, but not for longer than the API server does.
func (l *limited) enter(r *http.Request) bool {
	select {
	case l.waiting <- struct{}{}:
		defer func() { <-l.waiting }()
	default:
		return false
	}
	timer := clock.RealClock{}.NewTimer(l.timeout)
	defer timer.Stop()
	select {
	case l.calls <- struct{}{}:
		return true
	case <-timer.C():
	case <-r.Context().Done():
	}
	return false
}
