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
}

func (a *application) set(version string, rate float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rates[version] = rate
}

func (a *application) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		fmt.Fprint(w, "ok")
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
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
