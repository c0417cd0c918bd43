// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// marker is what the server writes wherever it can. No status may contain it.
const marker = "s3cr3t-marker"

// asked is a request that the server has received.
type asked struct {
	what string // the query, or the path
	at   time.Time
}

// server stands in for Prometheus, and for the application at every other path.
type server struct {
	*httptest.Server

	mu      sync.Mutex
	value   string // what Prometheus answers; empty means no series
	status  int    // what the application answers; Prometheus answers with an error if it is not 200
	before  string // what Prometheus answers for the time of a baseline
	entered chan struct{}
	blocked chan struct{} // nil unless answers have to wait
	all     []asked
}

func startServer(t *testing.T) *server {
	t.Helper()
	s := &server{value: "0.5", status: http.StatusOK, entered: make(chan struct{}, 100)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// ServeHTTP answers.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	value, status, blocked := s.note(r)
	s.entered <- struct{}{}
	if blocked != nil {
		select {
		case <-blocked:
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("X-Marker", marker)
	w.Header()["Date"] = nil // the clock of the test is another one
	switch {
	case r.URL.Path != "/api/v1/query":
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, marker)
	case status != http.StatusOK:
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"status":"error","errorType":"execution","error":%q}`, marker)
	default:
		_, _ = fmt.Fprintf(w, `{"status":"success","infos":[%q],"data":{"resultType":"vector","result":[%s]}}`, marker, value)
	}
}

func (s *server) note(r *http.Request) (series string, status int, blocked chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, value := asked{what: r.URL.Path}, s.value
	if r.URL.Path == "/api/v1/query" {
		seconds, _ := strconv.ParseFloat(r.FormValue("time"), 64)
		a = asked{what: r.FormValue("query"), at: time.UnixMilli(int64(seconds * 1000)).UTC()}
		if a.at.Equal(promotedAt) {
			value = s.before
		}
	}
	s.all = append(s.all, a)
	if value != "" {
		series = fmt.Sprintf(`{"metric":{"__name__":%q},"value":[0,%q]}`, marker, value)
	}
	return series, s.status, s.blocked
}

// says sets what Prometheus answers from now on.
func (s *server) says(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value = value
}

// answers sets the status code of the answers from now on.
func (s *server) answers(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// block lets answers wait until the returned function is called.
func (s *server) block() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	blocked := make(chan struct{})
	s.blocked = blocked
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.blocked = nil
		close(blocked)
	}
}

// asked returns what the server was asked so far.
func (s *server) asked() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}
