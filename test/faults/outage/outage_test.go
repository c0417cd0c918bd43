// SPDX-License-Identifier: Apache-2.0

// Package outage takes the API server and etcd away while releases are promoted,
// for moments and for longer than a bake or a lease lasts.
package outage

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/e2e/stage"
	"github.com/fluxrollouts/rollout-controller/test/faults/observer"
	"github.com/fluxrollouts/rollout-controller/test/faults/report"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// plane is shared by the stories, which run one after another.
var plane *stage.Plane

// elected lets the controller lead under a lease that is short, so that an outage
// can outlast it.
var elected = []string{
	"--leader-elect", "--leader-election-lease-duration=5s",
	"--leader-election-renew-deadline=4s", "--leader-election-retry-period=1s",
}

// The lengths of an outage: one that is over before anybody gives up, and one that
// outlasts the lease and every bake.
const (
	moment = 300 * time.Millisecond
	long   = 7 * time.Second
	bake   = 3 * time.Second
)

func TestMain(m *testing.M) {
	os.Exit(stage.Main(m, &plane, controlplane.Options{Flux: true, ImageScanner: true}, elected...))
}

const promise = "the same history, each release once, each target written once, bakes on fresh health; nobody restarts anything but the Deployment"

func TestTheAPIServerIsKilledAndStarted(t *testing.T) {
	told := report.Begin(t, "the API server is killed and started again in the midst of promotions and bakes", promise)
	server := plane.Part(parts.APIServer)
	kill := func(t *testing.T, away time.Duration) {
		t.Helper()
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(away)
		if err := server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s := begin(t)
	s.round(deploying, func() { kill(t, moment) })
	s.round(baking, func() { kill(t, moment) })
	s.round(deploying, func() { kill(t, long) })
	s.round(baking, func() { kill(t, long) })
	s.end(told)
}

func TestEtcdIsKilledAndFrozen(t *testing.T) {
	told := report.Begin(t, "etcd is killed and started again, or frozen, in the midst of promotions and bakes", promise)
	etcd := plane.Part(parts.Etcd)
	kill := func(away time.Duration) {
		if err := etcd.Kill(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(away)
		if err := etcd.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	freeze := func(away time.Duration) {
		etcd.Pause()
		time.Sleep(away)
		etcd.Resume()
	}
	s := begin(t)
	s.round(deploying, func() { kill(moment) })
	s.round(baking, func() { kill(long) })
	s.round(deploying, func() { freeze(long) })
	s.round(baking, func() { freeze(long) })
	s.end(told)
}

// story is a series of releases of some applications, one outage for each.
type story struct {
	t      *testing.T
	random *rand.Rand
	keeper *stage.Keeper
	// baked is the application whose state says when it is time.
	baked    *stage.Application
	all      []*stage.Application
	released []string
	outages  int
}

func begin(t *testing.T) *story {
	t.Helper()
	s := &story{t: t, random: stage.Random(t), keeper: stage.Keep(t, plane.Controller)}
	plane.RefusalsAreMeant = true // an API server that has just started knows no rights for a moment
	checked := scenario.App{Name: "shop"}.Baked(bake, time.Hour)
	s.baked = stage.NewApplication(t, plane, checked)
	s.all = []*stage.Application{
		s.baked, stage.NewApplication(t, plane),
		stage.NewApplication(t, plane, func(spec *v1alpha1.RolloutSpec) { spec.BakeTime = &metav1.Duration{Duration: bake} }),
	}
	s.release(func(string) {})
	return s
}

// deploying and baking are moments at which an outage begins: when a release is
// recorded, and when it bakes.
func deploying(r *v1alpha1.Rollout, version string) bool {
	return r.Current() != nil && r.Current().Version.Tag == version
}

func baking(r *v1alpha1.Rollout, version string) bool {
	return deploying(r, version) && r.Current().State() == v1alpha1.BakeInProgress
}

// round has an outage at a moment of a promotion.
func (s *story) round(at func(*v1alpha1.Rollout, string) bool, outage func()) {
	s.t.Helper()
	s.release(func(version string) {
		s.baked.Await("the moment for an outage", func(r *v1alpha1.Rollout) bool { return at(r, version) })
		time.Sleep(time.Duration(s.random.Int64N(int64(100 * time.Millisecond))))
		outage()
	})
	s.outages++
}

// release publishes a version everywhere, and waits until it has succeeded.
func (s *story) release(meanwhile func(version string)) {
	s.t.Helper()
	version := fmt.Sprintf("1.%d.0", len(s.released))
	for _, a := range s.all {
		a.Release(version)
	}
	meanwhile(version)
	for _, a := range s.all {
		a.AwaitState(version, v1alpha1.BakeSucceeded)
	}
	s.released = append(s.released, version)
}

func (s *story) end(told *report.Report) {
	s.t.Helper()
	for _, a := range s.all {
		a.HasEveryReleaseOnce(s.released)
		a.WroteEachTargetOnce(len(s.released))
		a.Agrees()
	}
	var namespaces []string
	for _, a := range s.all {
		namespaces = append(namespaces, a.Namespace)
	}
	story := observer.Replay(s.t, plane.ControlPlane, namespaces...)
	told.Saw(s.outages, "%d releases of %d applications: %d promotions, each succeeded once, and each of %d targets was written once for each; "+
		"%d states broke no promise; the program gave up %d times and was started again",
		len(s.released), len(s.all), story.Promotions, len(story.Writes), story.States, s.keeper.Ended())
}
