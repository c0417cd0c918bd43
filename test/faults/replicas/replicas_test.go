// SPDX-License-Identifier: Apache-2.0

// Package replicas freezes the leader of two controllers for longer than its lease, and
// wakes it long after the other one has taken over.
package replicas

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/faults/observer"
	"github.com/fluxrollouts/rollout-controller/test/faults/report"
	"github.com/fluxrollouts/rollout-controller/test/faults/wire"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// elected lets one of the replicas act, under a short lease.
var elected = []string{
	"--leader-elect", "--leader-election-lease-duration=4s",
	"--leader-election-renew-deadline=3s", "--leader-election-retry-period=500ms",
}

const (
	status         = "kuberik.com/rollouts/status"
	repositories   = "source.toolkit.fluxcd.io/ocirepositories"
	kustomizations = "kustomize.toolkit.fluxcd.io/kustomizations"
	checks         = "kuberik.com/healthchecks/status"
)

// moments are the writes of a promotion. The leader is frozen when it makes one of them.
// The write reaches the API server long after, just before the leader wakes.
var moments = []moment{
	{"before the record", status, 1},
	{"between the record and the first target", repositories, 1},
	{"between two targets", kustomizations, 1},
	{"before a HealthCheck is reset", checks, 1},
	{"before the bake is recorded", status, 2},
	{"before the outcome is recorded", status, 3},
}

type moment struct {
	name     string
	resource string
	nth      int32
}

// each is the number of these moments at which a pair of controllers is frozen. Each pair
// is frozen once more at any other moment.
const each = 2

func TestLeaderThatWasFrozenDoesNothingTwice(t *testing.T) {
	reported := report.Begin(t, "of two controllers, the leader is frozen in the midst of a promotion (SIGSTOP), and woken when its lease is lost and the other has gone on",
		"no release is promoted twice, no target goes back to an older version or is written twice; who was replaced ends itself")
	plane := env.StartFor(t, controlplane.Options{Flux: true, ImageScanner: true})
	if err := plane.Controller.Stop(t.Context()); err != nil { // pairs replace it
		t.Fatal(err)
	}
	kubeconfig, err := scenario.Credentials(plane.ControlPlane, scenario.Account)
	if err != nil {
		t.Fatal(err)
	}
	var releases, freezes, refused, ended atomic.Int32
	t.Run("pairs", func(t *testing.T) {
		for some := range slices.Chunk(moments, each) {
			t.Run(some[0].name, func(t *testing.T) {
				t.Parallel()
				s := begin(t, plane, kubeconfig)
				for _, moment := range some {
					s.freezeAt(moment)
				}
				s.freezeAtRandom()
				s.end()
				releases.Add(int32(len(s.released)))
				freezes.Add(int32(s.freezes))
				refused.Add(int32(s.refused))
				ended.Add(int32(s.pair.ended()))
			})
		}
	})
	reported.Saw(int(freezes.Load()), "%d releases, each promoted once, each of 2 targets written once for each; %d of %d writes that came late were refused; the leader ended itself %d times",
		releases.Load(), refused.Load(), len(moments), ended.Load())
}

// series consists of releases. The leader freezes during some of them.
type series struct {
	*env.Application
	pair     *pair
	released []string
	freezes  int
	// refused counts the late writes that were refused.
	refused int
}

func begin(t *testing.T, plane *env.Plane, kubeconfig string) *series {
	t.Helper()
	app := env.NewApplication(t, plane, scenario.App{Name: "shop"}.Baked(time.Second, time.Hour))
	s := &series{Application: app, pair: raise(t, plane, kubeconfig, app.Namespace)}
	s.release()
	return s
}

// freezeAt freezes the leader when it makes a write. That write arrives late and must be
// refused.
func (s *series) freezeAt(moment moment) {
	s.T.Helper()
	trap := newTrap(s.T, moment.resource, moment.nth)
	s.pair.trap.Store(trap)
	s.goesOnWithout(func() *replica { return trap.catch(s.T, moment.name) }, func() {
		trap.letGo()
		if code := trap.held.answer(s.T); code != http.StatusConflict {
			s.T.Errorf("%s: %s came late and was answered with %d", moment.name, trap.held.request, code)
			return
		}
		s.refused++
	})
}

func (s *series) freezeAtRandom() {
	s.T.Helper()
	random := env.Random(s.T)
	s.goesOnWithout(func() *replica {
		time.Sleep(time.Duration(random.Int64N(int64(1500 * time.Millisecond))))
		leader := s.pair.leader.Load()
		leader.program.Pause()
		return leader
	}, func() {})
}

func (s *series) end() {
	s.T.Helper()
	s.HasEveryReleaseOnce(s.released)
	s.WroteEachTargetOnce(len(s.released))
	s.Agrees()
	seen := observer.Replay(s.T, s.Plane.ControlPlane, s.Namespace)
	if seen.Late > s.freezes {
		s.T.Errorf("%d versions were written that were not the newest any more, in %d freezes", seen.Late, s.freezes)
	}
}

// publish publishes the next release.
func (s *series) publish() string {
	s.T.Helper()
	version := fmt.Sprintf("1.%d.0", len(s.released))
	s.Release(version)
	s.released = append(s.released, version)
	return version
}

func (s *series) release() {
	s.T.Helper()
	s.AwaitState(s.publish(), v1alpha1.BakeSucceeded)
}

// goesOnWithout publishes a release, freezes the leader during its promotion, and wakes
// it after that release and the next one have succeeded. The leader's late write arrives
// just before it wakes.
func (s *series) goesOnWithout(freeze func() *replica, late func()) {
	s.T.Helper()
	version := s.publish()
	frozen := freeze()
	s.freezes++
	ended := frozen.restarter.Ended()
	s.AwaitState(version, v1alpha1.BakeSucceeded)
	s.release()
	if leads := s.pair.leader.Load(); leads == frozen {
		s.T.Fatalf("%s leads, which is frozen", frozen.program.Name)
	}
	late()
	frozen.program.Resume()
	env.Eventually(s.T, "the end of a leader that was replaced", func() (bool, string) {
		return frozen.restarter.Ended() > ended && frozen.program.Running(), frozen.program.Name + " runs"
	})
}

// pair consists of two controllers, each with a wire of its own to the API server.
type pair struct {
	all    []*replica
	leader atomic.Pointer[replica]
	trap   atomic.Pointer[trap]
}

type replica struct {
	program   *controlplane.Process
	restarter *env.Restarter
	wire      *wire.Wire
}

// raise starts a pair that acts in one namespace, under a Lease of its own.
func raise(t *testing.T, plane *env.Plane, kubeconfig, namespace string) *pair {
	t.Helper()
	p := &pair{}
	for _, name := range []string{"one", "two"} {
		r := &replica{}
		p.all = append(p.all, r)
		var err error
		if r.wire, err = wire.Open(kubeconfig); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.wire.Close)
		r.wire.Inject(func(request wire.Request) wire.Fault { return p.judge(r, request) })
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := r.wire.WriteKubeconfig(path); err != nil {
			t.Fatal(err)
		}
		r.program, err = plane.StartAs(namespace+"-"+name, path, []string{"RUNTIME_NAMESPACE=" + namespace}, append([]string{
			"--watch-all-namespaces=false", "--leader-election-namespace=" + scenario.Namespace, "--leader-election-id=" + namespace,
		}, elected...)...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.program.Kill() })
		r.restarter = env.KeepRunning(t, r.program)
	}
	return p
}

// judge receives every request before the API server does. The replica that writes the
// Lease is the leader.
func (p *pair) judge(r *replica, request wire.Request) wire.Fault {
	if request.Resource == "coordination.k8s.io/leases" && request.Verb != "get" {
		p.leader.Store(r)
	}
	if trap := p.trap.Load(); trap != nil && trap.springs(request) {
		r.program.Pause()
		trap.held = held{replica: r, request: request}
		trap.sprung <- r
		<-trap.over
	}
	return wire.Fault{}
}

func (p *pair) ended() int {
	n := 0
	for _, r := range p.all {
		n += r.restarter.Ended()
	}
	return n
}

// trap freezes the replica that makes the nth write of a resource, and delays that
// request until letGo is called.
type trap struct {
	resource string
	nth      int32
	came     atomic.Int32
	sprung   chan *replica
	over     chan struct{}
	letGo    func() // closes over
	held     held
}

func newTrap(t *testing.T, resource string, nth int32) *trap {
	t.Helper()
	over := make(chan struct{})
	letGo := sync.OnceFunc(func() { close(over) })
	t.Cleanup(letGo)
	return &trap{resource: resource, nth: nth, sprung: make(chan *replica, 1), over: over, letGo: letGo}
}

func (h *trap) springs(request wire.Request) bool {
	return request.Write > 0 && request.Resource == h.resource && h.came.Add(1) == h.nth
}

// catch waits for the trap to spring.
func (h *trap) catch(t *testing.T, what string) (caught *replica) {
	t.Helper()
	env.Eventually(t, "the leader frozen "+what, func() (bool, string) {
		select {
		case caught = <-h.sprung:
			return true, ""
		default:
			return false, fmt.Sprintf("%d writes of %s", h.came.Load(), h.resource)
		}
	})
	return caught
}

// held is a request of a frozen replica.
type held struct {
	replica *replica
	request wire.Request
}

// answer returns the status code of the API server's response to the request.
func (h held) answer(t *testing.T) (code int) {
	t.Helper()
	env.Eventually(t, "an answer to "+h.request.String(), func() (bool, string) {
		for _, entry := range h.replica.wire.Writes() {
			if entry.Write == h.request.Write {
				code = entry.Code
			}
		}
		return code != 0, "none"
	})
	return code
}
