// SPDX-License-Identifier: Apache-2.0

// Package rollback lets releases fail whose pods crash, and looks at how Rollouts go back
// by themselves. It has the real Flux, real Deployments on simulated nodes, and alerts
// that arrive at a webhook.
package rollback

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"testing"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// testsAtOnce is greater than the number of processors, because tests mostly wait.
const testsAtOnce = "4"

// plane is shared by the tests.
var plane *env.Plane

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", testsAtOnce); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(run(m))
}

// run forwards the events of the controller: it starts before the address of
// notification-controller is known here.
func run(m *testing.M) int {
	server := httptest.NewServer(&httputil.ReverseProxy{Rewrite: toNotificationController, Transport: &http.Transport{DisableKeepAlives: true}})
	defer server.Close()
	return env.Main(m, &plane, controlplane.Options{Workloads: true, Flux: true, Helm: true, ImageScanner: true, Notifications: true},
		"--events-addr="+server.URL)
}

func toNotificationController(r *httputil.ProxyRequest) {
	to, err := url.Parse(plane.EventsURL())
	if err != nil {
		panic(fmt.Sprintf("the address of notification-controller: %v", err))
	}
	r.SetURL(to)
}
