// SPDX-License-Identifier: Apache-2.0

// Package hanging lets the services that the controller uses in addition to its main work
// accept requests and never answer: the registry with the metadata of releases, and the
// endpoint for notifications.
package hanging

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/faults/observer"
	"github.com/fluxrollouts/rollout-controller/test/faults/report"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

const (
	// applications is how many applications are promoted at once.
	applications = 12
	// lookUps is how many look-ups are made at a time, at most.
	lookUps = 4
	// spare is how many goroutines may be added.
	spare = 60
)

func TestHangingServicesHoldNoPromotion(t *testing.T) {
	reported := report.Begin(t, "the registry, for look-ups of metadata, and the endpoint for notifications take requests and never answer, both at once",
		"every promotion goes on as without, at the same cost; goroutines are bounded; metadata and events come when they answer again")
	events := &staller{onwards: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), mayHang: func(*http.Request) bool { return true }}
	metadata := &staller{mayHang: func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/")
	}}
	var delivered atomic.Int64
	events.onwards = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { delivered.Add(1) })
	address := env.FreeAddress(t)
	plane := env.StartFor(t, controlplane.Options{Flux: true, ImageScanner: true},
		"--leader-elect", "--events-addr="+serve(t, events), "--metrics-bind-address="+address, "--metrics-secure=false")
	metadata.onwards = plane.Registry
	f := raise(t, plane, strings.TrimPrefix(serve(t, metadata), "http://"))

	f.release("1.0.0")
	f.awaitMetadata("1.0.0")
	answered := f.release("1.1.0")
	f.awaitMetadata("1.1.0")
	goroutines, costs := env.Metric(t, address, "go_goroutines"), f.statusWrites()

	events.hang()
	metadata.hang()
	hung := f.release("1.2.0")
	atOnce := env.Metric(t, address, "go_goroutines")
	if atOnce > goroutines+spare {
		t.Errorf("%v goroutines while everything hung, %v before", atOnce, goroutines)
	}
	cost := f.statusWrites() - costs
	if cost > 2*applications {
		t.Errorf("%d promotions cost %d writes of a status while everything hung", applications, cost)
	}
	before := delivered.Load()
	asked, most := metadata.counts()
	if asked == 0 || most > lookUps {
		t.Errorf("%d look-ups hung, %d of them at a time; want some, and at most %d", asked, most, lookUps)
	}
	sent, _ := events.counts()
	if sent == 0 {
		t.Error("no event was sent while the endpoint hung")
	}

	events.answerAgain()
	metadata.answerAgain()
	f.awaitMetadata("1.2.0")
	f.all[0].Release("1.3.0")
	f.all[0].AwaitState("1.3.0", v1alpha1.BakeSucceeded)
	env.Eventually(t, "events being delivered again, until none waits", func() (bool, string) {
		waiting := env.Metric(t, address, "rollout_notifications_queue_length")
		return waiting == 0 && delivered.Load() > before, fmt.Sprintf("%v wait, %d delivered", waiting, delivered.Load())
	})
	f.all[0].HasEveryReleaseOnce([]string{"1.0.0", "1.1.0", "1.2.0", "1.3.0"})
	for _, a := range f.all[1:] {
		a.HasEveryReleaseOnce([]string{"1.0.0", "1.1.0", "1.2.0"})
		a.WroteEachTargetOnce(3)
	}
	found := observer.Replay(t, plane.ControlPlane, f.namespaces()...)
	reported.Saw(asked+sent, "%d promotions at once took %.1f times as long as while both answered, with %d status writes; %d look-ups at a time, %v goroutines more; "+
		"all metadata and %d events came afterwards; %d promotions in all, each once",
		applications, hung.Seconds()/answered.Seconds(), cost, most, atOnce-goroutines, delivered.Load()-before, found.Promotions)
}

func serve(t *testing.T, s *staller) string {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		s.answerAgain()
		server.Close()
	})
	return server.URL
}

// fleet contains applications that are released at once.
type fleet struct {
	t     *testing.T
	plane *env.Plane
	all   []*env.Application
}

// raise creates applications whose metadata comes from another registry than the one that
// Flux pulls from.
func raise(t *testing.T, plane *env.Plane, metadataHost string) *fleet {
	t.Helper()
	f := &fleet{t: t, plane: plane}
	for range applications {
		a := env.NewApplication(t, plane)
		repository := a.ImageRepository("")
		a.Change(repository, func() { repository.Spec.Image = metadataHost + "/" + a.Repository })
		f.all = append(f.all, a)
	}
	return f
}

// release promotes a version in all applications, and returns the time that this took.
func (f *fleet) release(version string) time.Duration {
	f.t.Helper()
	start := time.Now()
	for _, a := range f.all {
		a.Release(version)
	}
	for _, a := range f.all {
		a.AwaitState(version, v1alpha1.BakeSucceeded)
	}
	return time.Since(start)
}

// awaitMetadata waits until each status contains the registry's metadata of a version.
func (f *fleet) awaitMetadata(version string) {
	f.t.Helper()
	for _, a := range f.all {
		a.Await("the metadata of "+version, func(r *v1alpha1.Rollout) bool {
			revision := r.Current().Version.Revision
			return revision != nil && cmp.Equal(*revision, version)
		})
	}
}

// statusWrites counts the writes of the status of Rollouts so far.
func (f *fleet) statusWrites() int {
	f.t.Helper()
	audited, err := f.plane.Audited()
	if err != nil {
		f.t.Fatal(err)
	}
	n := 0
	for _, request := range audited {
		if request.User == scenario.User(scenario.Account) && request.IsWrite() && request.Resource == "kuberik.com/rollouts/status" {
			n++
		}
	}
	return n
}

func (f *fleet) namespaces() []string {
	var all []string
	for _, a := range f.all {
		all = append(all, a.Namespace)
	}
	return all
}
