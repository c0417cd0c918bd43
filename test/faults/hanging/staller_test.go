// SPDX-License-Identifier: Apache-2.0

package hanging

import (
	"net/http"
	"sync"
)

// staller forwards requests. A test can make it hang on some of them: it then accepts
// them and never answers.
type staller struct {
	// onwards answers the requests that do not hang.
	onwards http.Handler
	// mayHang reports whether a request hangs while the staller does.
	mayHang func(*http.Request) bool

	mu      sync.Mutex
	hanging chan struct{} // closed when it answers again; nil while it answers
	hung    int           // requests that hung, or hang now
	now     int           // requests that hang now
	most    int           // the most that hung at one time
}

// ServeHTTP implements http.Handler.
func (s *staller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.mayHang(r) && !s.wait(r.Context().Done()) {
		return
	}
	s.onwards.ServeHTTP(w, r)
}

// wait waits while the staller hangs, and reports whether the client still waits for an
// answer.
func (s *staller) wait(gone <-chan struct{}) bool {
	hanging := s.enter()
	if hanging == nil {
		return true
	}
	defer s.leave()
	select {
	case <-gone:
		return false
	case <-hanging:
		return true
	}
}

func (s *staller) enter() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hanging != nil {
		s.hung++
		s.now++
		s.most = max(s.most, s.now)
	}
	return s.hanging
}

func (s *staller) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
}

func (s *staller) hang() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hanging = make(chan struct{})
}

func (s *staller) answerAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hanging != nil {
		close(s.hanging)
		s.hanging = nil
	}
}

// counts returns the number of requests that hung, and the highest number at one time.
func (s *staller) counts() (hung, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hung, s.most
}
