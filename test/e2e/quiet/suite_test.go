// SPDX-License-Identifier: Apache-2.0

// Package quiet counts the controller's requests to the API server, by the server's own
// metrics. It has a control plane of its own. Its tests run one after another, so nothing
// else makes requests meanwhile.
package quiet

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// plane is shared by the tests.
var plane *env.Plane

// metricsAddress is the address at which the controller serves its metrics.
var metricsAddress string

func TestMain(m *testing.M) {
	var err error
	if metricsAddress, err = controlplane.FreeAddress(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(env.Main(m, &plane, controlplane.Options{Flux: true, ImageScanner: true}, flags()...))
}

// flags returns the flags of the controller.
func flags() []string {
	return append([]string{"--metrics-bind-address=" + metricsAddress, "--metrics-secure=false"}, env.AsShipped...)
}

// requestsDuring counts the requests to the API server while a function runs, and until
// it is quiet again.
func requestsDuring(t *testing.T, happen func()) controlplane.Requests {
	t.Helper()
	before := requests(t)
	happen()
	awaitQuiet(t)
	return requests(t).Since(before)
}

// awaitQuiet waits until there are no requests for some seconds.
func awaitQuiet(t *testing.T) {
	t.Helper()
	const long = 3 * time.Second
	before, since := requests(t), time.Now()
	env.Eventually(t, "a quiet API server", func() (bool, string) {
		now := requests(t)
		if len(now.Since(before)) > 0 {
			before, since = now, time.Now()
		}
		return time.Since(since) >= long, ""
	})
}

// requests returns the requests so far, without renewals of leases, and without those
// that the API server makes to itself: about its own API, and every few minutes about the
// addresses of Services.
func requests(t *testing.T) controlplane.Requests {
	t.Helper()
	all, err := plane.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for request := range all {
		if request.Resource == "leases" || request.Resource == "services" || request.Subresource == "openapi/v3" {
			delete(all, request)
		}
	}
	return all
}
