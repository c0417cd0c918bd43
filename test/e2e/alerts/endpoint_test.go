// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"bytes"
	"io"
	"net/http"
	"sync"
)

// endpoint forwards events to notification-controller. A test can make it hang: it then
// accepts requests and never answers.
type endpoint struct {
	mu      sync.Mutex
	taken   int           // requests
	passed  int           // requests that were answered
	hanging chan struct{} // closed when it answers again; nil while it answers
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if e.take(r.Context().Done()) {
		w.WriteHeader(post(r, plane.EventsURL(), body))
	}
}

// take waits while the endpoint hangs. It reports whether the client still waits for an
// answer.
func (e *endpoint) take(gone <-chan struct{}) bool {
	e.mu.Lock()
	e.taken++
	hanging := e.hanging
	e.mu.Unlock()
	if hanging != nil {
		select {
		case <-gone:
			return false
		case <-hanging:
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.passed++
	return true
}

func (e *endpoint) hang() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hanging = make(chan struct{})
}

func (e *endpoint) answerAgain() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.hanging != nil {
		close(e.hanging)
		e.hanging = nil
	}
}

// counts returns the number of requests that arrived, and of those that were answered.
func (e *endpoint) counts() (taken, passed int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.taken, e.passed
}

// post sends a request's body to another URL, and returns the status of the response.
func post(r *http.Request, url string, body []byte) int {
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return http.StatusInternalServerError
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return http.StatusBadGateway
	}
	_ = response.Body.Close()
	return response.StatusCode
}
