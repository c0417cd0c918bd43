// SPDX-License-Identifier: Apache-2.0

// Package approvals lets people approve releases under their own names, which the shipped
// admission policies check. It has the real Flux, a registry in which tags move, and alerts
// that arrive at a webhook.
package approvals

import (
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// plane is shared by the tests.
var plane *env.Plane

// settles is how long after the creation of the policies approvals count.
const settles = 32 * time.Second

// install creates the policies, as their components do, and waits until approvals count.
var install = sync.OnceValue(func() error {
	err := scenario.InstallAdmission(context.Background(), plane.ControlPlane, components...)
	time.Sleep(settles)
	return err
})

var components = []string{"approvals", "deploy-user"}

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "4"); err != nil { // tests mostly wait
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(run(m))
}

// run forwards the events of the controller: it starts before the address of
// notification-controller is known here.
func run(m *testing.M) int {
	server := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		if to, err := url.Parse(plane.EventsURL()); err == nil {
			r.SetURL(to)
		}
	}})
	defer server.Close()
	setting := env.Setting{
		Options:    controlplane.Options{Flux: true, ImageScanner: true, Notifications: true},
		Components: components, Args: []string{"--events-addr=" + server.URL},
	}
	return setting.Main(m, &plane)
}
