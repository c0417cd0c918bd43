// SPDX-License-Identifier: Apache-2.0

// Package alerts follows Flux events from the controller through the real
// notification-controller to a webhook. It has a control plane of its own. The
// controller's events pass through a relay that a test can make hang.
package alerts

import (
	"fmt"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

var (
	// plane is shared by the tests.
	plane *env.Plane
	// relay is the endpoint to which the controller sends events.
	relay *endpoint
	// metricsAddress is the address at which the controller serves its metrics.
	metricsAddress string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if metricsAddress, err = controlplane.FreeAddress(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	relay = &endpoint{}
	server := httptest.NewServer(relay)
	defer server.Close()
	defer relay.answerAgain()
	return env.Main(m, &plane, controlplane.Options{Flux: true, ImageScanner: true, Notifications: true},
		"--events-addr="+server.URL, "--metrics-bind-address="+metricsAddress, "--metrics-secure=false")
}
