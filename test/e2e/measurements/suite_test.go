// SPDX-License-Identifier: Apache-2.0

package measurements

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

var (
	// plane is shared by the tests.
	plane *env.Plane
	// rates is an application, as Prometheus sees it.
	rates *application
)

// application serves an error rate for each version, and says that it is ok.
type application struct {
	server *httptest.Server
	mu     sync.Mutex
	rates  map[string]float64
	// failing is the part of the requests of its users that fail.
	failing          float64
	requests, failed float64
	counted          time.Time
}

func (a *application) set(version string, rate float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rates[version] = rate
}

// fail makes a part of the requests fail from now on.
func (a *application) fail(part float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failing = part
}

// count counts the requests since the last time: a hundred in a second.
func (a *application) count(now time.Time) {
	if !a.counted.IsZero() {
		came := 100 * now.Sub(a.counted).Seconds()
		a.requests, a.failed = a.requests+came, a.failed+came*a.failing
	}
	a.counted = now
}

func (a *application) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		fmt.Fprint(w, "ok")
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count(time.Now())
	fmt.Fprintf(w, "http_requests_total{app=\"shop\",code=\"200\"} %f\nhttp_requests_total{app=\"shop\",code=\"500\"} %f\n", a.requests-a.failed, a.failed)
	for version, rate := range maps.All(a.rates) {
		fmt.Fprintf(w, "error_rate{version=%q} %g\n", version, rate)
	}
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	rates = &application{rates: map[string]float64{}}
	rates.server = httptest.NewServer(rates)
	rates.server.Config.SetKeepAlivesEnabled(false) // no connection is left when leaks are looked for
	defer rates.server.Close()
	dir, err := os.MkdirTemp("", "measurements-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	prometheus, err := controlplane.StartPrometheus(context.Background(), dir, map[string]string{"shop": strings.TrimPrefix(rates.server.URL, "http://")})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = prometheus.Stop() }()
	return env.Main(m, &plane, controlplane.Options{Flux: true, ImageScanner: true},
		"--prometheus-address="+prometheus.URL, "--health-destinations="+rates.server.URL)
}
