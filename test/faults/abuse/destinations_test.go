// SPDX-License-Identifier: Apache-2.0

package abuse

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// marker is in each answer of a destination that is meant to harm. No HealthCheck may show
// it.
const marker = "what-only-the-server-knows"

// destinations are the servers that the operator lets HealthChecks ask. All tenants may ask
// all of them.
type destinations struct {
	// honest answers at once, to each tenant that asks.
	honest *honest
	// hostile answer in ways that are meant to harm.
	hostile []*hostileServer
}

func openDestinations() *destinations {
	all := &destinations{honest: &honest{asked: map[string]int{}}}
	all.honest.open(all.honest)
	answers := []http.HandlerFunc{hangs, neverEnds, all.redirects, drips}
	for range 3 { // there are limits by destination: more of them do more harm
		for _, answer := range answers {
			server := &hostileServer{answer: answer}
			server.open(server)
			all.hostile = append(all.hostile, server)
		}
	}
	return all
}

// flags returns the flags of the controller that allow the destinations.
func (d *destinations) flags() []string {
	all := []string{"--prometheus-address=" + d.honest.URL}
	for _, server := range d.hostile {
		all = append(all, "--health-destinations="+server.URL)
	}
	return all
}

func (d *destinations) close() {
	d.honest.CloseClientConnections()
	d.honest.Close()
	for _, server := range d.hostile {
		server.CloseClientConnections()
		server.Close()
	}
}

// underWay returns how many requests of those who mean harm are not answered yet, and the
// highest number of one server.
func (d *destinations) underWay() (total, ofOne int64) {
	total = d.honest.slow.Load()
	ofOne = total
	for _, server := range d.hostile {
		n := server.underWay.Load()
		total, ofOne = total+n, max(ofOne, n)
	}
	return total, ofOne
}

// listening is a server on loopback.
type listening struct{ *httptest.Server }

func (l *listening) open(handler http.Handler) {
	l.Server = httptest.NewUnstartedServer(handler)
	l.Config.SetKeepAlivesEnabled(false) // no connection is left when leaks are looked for
	l.Start()
}

// slow is a query that the honest Prometheus needs longer for than anybody waits.
const slow = "sum(everything)"

// honest is a Prometheus whose only number is 1, and an application that is ok. It counts
// the queries and requests, by their text.
type honest struct {
	listening
	slow  atomic.Int64 // slow queries that are under way
	mu    sync.Mutex
	asked map[string]int
}

// ServeHTTP implements http.Handler.
func (h *honest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	what := r.URL.Path
	if query := r.FormValue("query"); query != "" {
		what = query
	}
	h.mu.Lock()
	h.asked[what]++
	h.mu.Unlock()
	if what == slow {
		h.slow.Add(1)
		defer h.slow.Add(-1)
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[%d,"1"]}]}}`, time.Now().Unix())
}

// times returns how often a query or a path was asked.
func (h *honest) times(what string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked[what]
}

// hostileServer counts the requests that it answers.
type hostileServer struct {
	listening
	answer   http.HandlerFunc
	underWay atomic.Int64
}

// ServeHTTP implements http.Handler.
func (h *hostileServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.underWay.Add(1)
	defer h.underWay.Add(-1)
	h.answer(w, r)
}

// hangs never answers.
func hangs(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// neverEnds sends a body without end, as fast as it can.
func neverEnds(w http.ResponseWriter, _ *http.Request) {
	text := []byte(strings.Repeat(marker, kibi))
	for {
		if _, err := w.Write(text); err != nil {
			return
		}
	}
}

// redirects sends each request to the honest server, in a way that keeps its method.
func (d *destinations) redirects(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, d.honest.URL+"/"+marker, http.StatusTemporaryRedirect)
}

// drips sends one byte a second.
func drips(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	next := time.NewTicker(time.Second)
	defer next.Stop()
	for i := 0; ; i++ {
		_, _ = io.WriteString(w, marker[i%len(marker):i%len(marker)+1])
		_ = http.NewResponseController(w).Flush()
		select {
		case <-next.C:
		case <-r.Context().Done():
			return
		}
	}
}

// workload is the highest number of requests that were under way, of all that stayed under
// way for a while: a server notices the end of a request a moment after its client.
type workload struct {
	mu           sync.Mutex
	total, ofOne int64
}

// settled is how many samples in a row a number of requests must be under way to count.
const settled = 25

// watchWorkload takes samples until the test is over.
func watchWorkload(t *testing.T, of *destinations) *workload {
	t.Helper()
	w, over := &workload{}, make(chan struct{})
	go func() {
		defer close(over)
		var totals, most []int64
		for t.Context().Err() == nil {
			total, ofOne := of.underWay()
			totals, most = lastOf(totals, total), lastOf(most, ofOne)
			w.saw(least(totals), least(most))
			time.Sleep(20 * time.Millisecond)
		}
	}()
	t.Cleanup(func() { <-over })
	return w
}

func (w *workload) saw(total, ofOne int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total, w.ofOne = max(w.total, total), max(w.ofOne, ofOne)
}

func (w *workload) most() (total, ofOne int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total, w.ofOne
}

// lastOf returns the newest samples, and one more.
func lastOf(samples []int64, newest int64) []int64 {
	samples = append(samples, newest)
	return samples[max(len(samples)-settled, 0):]
}

// least returns the lowest of the samples; zero before there are enough.
func least(samples []int64) int64 {
	if len(samples) < settled {
		return 0
	}
	lowest := samples[0]
	for _, n := range samples {
		lowest = min(lowest, n)
	}
	return lowest
}
