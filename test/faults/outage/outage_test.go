// SPDX-License-Identifier: Apache-2.0

// Package outage stops the API server and etcd while releases are promoted, for moments
// and for longer than a bake or a lease lasts.
package outage

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/faults/observer"
	"github.com/fluxrollouts/rollout-controller/test/faults/report"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// elected makes the controller lead under a short lease. An outage can then last longer
// than the lease.
var elected = []string{
	"--leader-elect", "--leader-election-lease-duration=4s",
	"--leader-election-renew-deadline=3s", "--leader-election-retry-period=500ms",
}

// The lengths of an outage: one that is over before any client gives up, and one that
// lasts longer than the lease and every bake.
const (
	moment = 300 * time.Millisecond
	long   = 5 * time.Second
	bake   = 2 * time.Second
)

const promise = "the same history, each release once, each target written once, bakes on fresh health; nobody restarts anything but the Deployments"

func TestAPIServerIsKilledAndStarted(t *testing.T) {
	reported := report.Begin(t, "the API server is killed and started again in the midst of promotions and bakes", promise)
	t.Parallel()
	s := begin(t)
	server := s.plane.Part(parts.APIServer)
	kill, start := s.kill(server), s.start(server)
	followed := s.follow("1.4.0")
	s.round(deploying, kill, moment, start)
	s.round(baking, kill, moment, start)
	s.round(deploying, kill, long, start)
	s.round(baking, kill, long, start)
	followed()
	s.end(reported)
}

// follow starts the command line's wait and watch, and awaits that they can read the
// Rollout. From then on they have to go on after each outage. The returned function checks
// that they have seen the version.
func (s *series) follow(version string) (seen func()) {
	s.t.Helper()
	user := s.baked.CommandLine("follower", "system:masters")
	wait := user.Start("wait", s.baked.Name, "--for=version="+version, "--timeout=1h")
	watch := user.Start("watch", s.baked.Name)
	wait.AwaitText(version)
	watch.AwaitText("shop  ")
	return func() {
		s.t.Helper()
		if ended := wait.End(); ended.Code != 0 || !strings.Contains(ended.Stderr, "Rollouts can be read again") {
			s.t.Errorf("the wait for %s ended with %+v", version, ended)
		}
		watch.AwaitText("shop  " + version + "    Succeeded")
		watch.Kill()
		watch.End()
	}
}

func TestEtcdIsKilledAndFrozen(t *testing.T) {
	reported := report.Begin(t, "etcd is killed and started again, or frozen, in the midst of promotions and bakes", promise)
	t.Parallel()
	s := begin(t)
	etcd := s.plane.Part(parts.Etcd)
	s.round(deploying, s.kill(etcd), moment, s.start(etcd))
	s.round(baking, s.kill(etcd), long, s.start(etcd))
	s.round(deploying, etcd.Pause, long, etcd.Resume)
	s.round(baking, etcd.Pause, long, etcd.Resume)
	s.end(reported)
}

// series contains the releases of some applications, with one outage for each.
type series struct {
	t         *testing.T
	plane     *env.Plane
	random    *rand.Rand
	restarter *env.Restarter
	// baked is the application whose state decides when an outage begins.
	baked    *env.Application
	all      []*env.Application
	released []string
	outages  int
}

// begin starts a control plane and releases the first version. The controller is started
// again whenever it has ended.
func begin(t *testing.T) *series {
	t.Helper()
	plane := env.StartFor(t, controlplane.Options{Flux: true, ImageScanner: true}, elected...)
	s := &series{t: t, plane: plane, random: env.Random(t), restarter: env.KeepRunning(t, plane.Controller)}
	plane.RefusalsAreMeant = true // an API server that has just started knows no rights for a moment
	checked := scenario.App{Name: "shop"}.Baked(bake, time.Hour)
	s.baked = env.NewApplication(t, plane, checked)
	s.all = []*env.Application{
		s.baked, env.NewApplication(t, plane),
		env.NewApplication(t, plane, func(spec *v1alpha1.RolloutSpec) { spec.BakeTime = &metav1.Duration{Duration: bake} }),
	}
	s.release(func(string) {})
	return s
}

// deploying and baking are the moments at which an outage begins: when a release is
// recorded, and when it bakes.
func deploying(r *v1alpha1.Rollout, version string) bool {
	return r.Current() != nil && r.Current().Version.Tag == version
}

func baking(r *v1alpha1.Rollout, version string) bool {
	return deploying(r, version) && r.Current().State() == v1alpha1.BakeInProgress
}

func (s *series) kill(part *controlplane.Process) func() {
	return func() {
		if err := part.Kill(); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *series) start(part *controlplane.Process) func() {
	return func() {
		if err := part.Start(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
}

// round promotes a release with an outage at a moment of the promotion.
func (s *series) round(at func(*v1alpha1.Rollout, string) bool, begins func(), away time.Duration, ends func()) {
	s.t.Helper()
	s.release(func(version string) {
		s.baked.Await("the moment for an outage", func(r *v1alpha1.Rollout) bool { return at(r, version) })
		time.Sleep(time.Duration(s.random.Int64N(int64(100 * time.Millisecond))))
		begins()
		time.Sleep(away)
		ends()
		if away == long {
			s.restartFlux()
		}
	})
	s.outages++
}

// restartFlux restarts Flux after a long outage, as its Deployments do. An installed Flux
// also has leases, but the Flux of this test has none.
func (s *series) restartFlux() {
	s.t.Helper()
	env.Eventually(s.t, "the API server serving again", func() (bool, string) {
		err := s.plane.Client().List(s.t.Context(), &v1alpha1.RolloutList{})
		return err == nil, fmt.Sprint(err)
	})
	for _, name := range []parts.Name{parts.SourceController, parts.KustomizeController, parts.ImageReflectorController} {
		if err := s.plane.Part(name).Restart(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
}

// release publishes a version in all applications, and waits until it has succeeded.
func (s *series) release(meanwhile func(version string)) {
	s.t.Helper()
	version := fmt.Sprintf("1.%d.0", len(s.released))
	for _, a := range s.all {
		a.Release(version)
	}
	meanwhile(version)
	for _, a := range s.all {
		s.awaitOffer(a, version)
	}
	for _, a := range s.all {
		a.AwaitState(version, v1alpha1.BakeSucceeded)
	}
	s.released = append(s.released, version)
}

// awaitOffer waits until Flux reports a version. It requests a scan again that an outage
// may have prevented, because the next regular scan is an hour away.
func (s *series) awaitOffer(a *env.Application, version string) {
	s.t.Helper()
	policy, asked := a.ImagePolicy(""), time.Now()
	env.Eventually(s.t, "an ImagePolicy that names "+version, func() (bool, string) {
		if time.Since(asked) > 10*time.Second {
			asked = time.Now()
			for _, object := range []client.Object{a.ImageRepository(""), a.ImagePolicy("")} {
				_ = s.plane.RequestReconcile(s.t.Context(), object) // the API server may be away
			}
		}
		err := s.plane.Client().Get(s.t.Context(), client.ObjectKeyFromObject(policy), policy)
		named := err == nil && policy.Status.LatestRef != nil && policy.Status.LatestRef.Tag == version
		return named, fmt.Sprintf("%v %+v", err, policy.Status)
	})
}

func (s *series) end(reported *report.Report) {
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
	found := observer.Replay(s.t, s.plane.ControlPlane, namespaces...)
	reported.Saw(s.outages, "%d releases of %d applications: %d promotions, each succeeded once, and each of %d targets was written once for each; "+
		"%d states broke no promise; the program gave up %d times and was started again",
		len(s.released), len(s.all), found.Promotions, len(found.Writes), found.States, s.restarter.Ended())
}
