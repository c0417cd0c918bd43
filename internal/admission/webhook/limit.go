// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

// Every client in the cluster can call the webhook, and its process also does other work.
// Therefore the memory that all calls together use is limited. A call beyond the limit
// gets an error, and the API server stores the object unchanged.
const (
	// maxBody is the maximum size of a call. It is about two objects of the largest size
	// that the API server stores.
	maxBody = 3 << 20
	// maxCalls is how many calls are answered at a time. An answer takes a millisecond.
	maxCalls = 4
	// maxWaiting is how many calls may wait.
	maxWaiting = 64
	// callTimeout is how long the API server waits for an answer.
	callTimeout = 2 * time.Second
)

// limited answers only a few calls at a time, and rejects large ones.
type limited struct {
	next    http.Handler
	calls   chan struct{}
	waiting chan struct{}
	timeout time.Duration
}

func limit(next http.Handler) *limited {
	return &limited{next: next, calls: make(chan struct{}, maxCalls), waiting: make(chan struct{}, maxWaiting), timeout: callTimeout}
}

// ServeHTTP answers a call, or returns an error that explains why not.
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
	// A client that sends slowly must not block others. Connections only use the real
	// clock.
	_ = http.NewResponseController(w).SetReadDeadline(clock.RealClock{}.Now().Add(l.timeout))
	l.next.ServeHTTP(w, r)
}

// enter waits for a free place, but not longer than the API server waits. It reports
// whether it found one.
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
