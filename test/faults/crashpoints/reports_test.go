// SPDX-License-Identifier: Apache-2.0

package crashpoints

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/faults/wire"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// reportRepository is where staging reports to.
const reportRepository = "promotions/staging"

// counter is a registry for the reports of one application. It counts the reports that
// arrive, and can lose one of them, or the answer to it.
type counter struct {
	registry *controlplane.Registry
	server   *httptest.Server

	mu     sync.Mutex
	pushes int
	fault  func(push int) wire.Fault
}

func openCounter(t *testing.T) *counter {
	t.Helper()
	r, err := controlplane.OpenRegistry()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.GoAway() })
	c := &counter{registry: r, fault: func(int) wire.Fault { return wire.Fault{} }}
	c.server = httptest.NewServer(c)
	t.Cleanup(c.server.Close)
	return c
}

// repository returns the repository of reports as Environments name it.
func (c *counter) repository() string {
	return strings.TrimPrefix(c.server.URL, "http://") + "/" + reportRepository
}

// ServeHTTP passes requests on to the registry. A report arrives with its manifest.
func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/manifests/") {
		c.registry.ServeHTTP(w, r)
		return
	}
	c.mu.Lock()
	c.pushes++
	fault := c.fault(c.pushes)
	c.mu.Unlock()
	fault.Serve(w, r, c.registry)
}

// reports returns how many reports have arrived.
func (c *counter) reports() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pushes
}

// stored returns the report that the registry has.
func (c *counter) stored(keys scenario.KeyPair, from report.Source) (report.Report, error) {
	answer := httptest.NewRecorder()
	c.registry.ServeHTTP(answer, httptest.NewRequest(http.MethodGet,
		"/v2/"+reportRepository+"/manifests/"+report.Tag(from.Namespace, from.Rollout), nil))
	var manifest v1.Manifest
	if err := json.Unmarshal(answer.Body.Bytes(), &manifest); err != nil || len(manifest.Layers) != 1 {
		return report.Report{}, errors.New("there is no report: " + answer.Body.String())
	}
	trusted, err := report.ParseTrustedKeys("the test", map[string][]byte{"any.pub": keys.Public})
	if err != nil {
		return report.Report{}, err
	}
	return report.Verify(manifest.Layers[0].Data, trusted, report.Expected{Source: from})
}
