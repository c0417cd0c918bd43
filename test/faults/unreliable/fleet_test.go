// SPDX-License-Identifier: Apache-2.0

// Package unreliable makes requests fail at random, and watches break, while the
// controller promotes releases and Flux deploys them.
package unreliable

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/faults/observer"
	"github.com/fluxrollouts/rollout-controller/test/faults/wire"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// fleet contains applications whose releases one controller promotes. The controller
// reaches the API server through a wire.
type fleet struct {
	t        *testing.T
	plane    *env.Plane
	wire     *wire.Wire
	observer *observer.Observer
	apps     []*env.Application
	released []string
	// restarter starts the controller again whenever it has ended.
	restarter *env.Restarter
}

// newFleet starts the controller and creates applications. Every third has no
// bake, every third a bake, and every third a HealthCheck as well.
func newFleet(t *testing.T, size int) *fleet {
	t.Helper()
	f := &fleet{t: t}
	setting := env.Setting{
		Options: controlplane.Options{Flux: true, ImageScanner: true}, Between: f.connect,
		Args: []string{"--max-retry-delay=1s"}, // instead of 30 s, to save time
	}
	f.plane = setting.For(t)
	f.restarter = env.KeepRunning(t, f.plane.Controller)
	f.observer = observer.Watch(t, f.plane.ControlPlane)
	kinds := [][]func(*v1alpha1.RolloutSpec){
		nil,
		{func(spec *v1alpha1.RolloutSpec) { spec.BakeTime = &metav1.Duration{Duration: time.Second} }},
		{scenario.App{Name: "shop"}.Baked(time.Second, time.Hour)},
	}
	for i := range size {
		f.apps = append(f.apps, env.NewApplication(t, f.plane, kinds[i%len(kinds)]...))
	}
	f.awaitController()
	return f
}

// awaitController waits until the controller has seen each Rollout. Before, it opens its
// watches, and those that fail are opened again after up to a minute: too long for a test.
func (f *fleet) awaitController() {
	f.t.Helper()
	for _, s := range f.apps {
		s.Await("what the controller says of it", func(r *v1alpha1.Rollout) bool { return r.Status.ObservedGeneration > 0 })
	}
}

// connect puts the wire between the controller and the API server.
func (f *fleet) connect(kubeconfig string) (string, error) {
	var err error
	if f.wire, err = wire.Open(kubeconfig); err != nil {
		return "", err
	}
	f.t.Cleanup(f.wire.Close)
	path := filepath.Join(f.t.TempDir(), "kubeconfig")
	return path, f.wire.WriteKubeconfig(path)
}

// round releases the next version in all applications, and waits until it has succeeded.
func (f *fleet) round() {
	f.t.Helper()
	version := fmt.Sprintf("1.%d.0", len(f.released))
	f.released = append(f.released, version)
	for _, s := range f.apps {
		s.Release(version)
	}
	for _, s := range f.apps {
		s.AwaitState(version, v1alpha1.BakeSucceeded)
	}
}

// promotions returns the expected number of promotions.
func (f *fleet) promotions() int { return len(f.apps) * len(f.released) }

// holds checks the result: the history is that of a run without faults, each target was
// written once for each release, and no event was emitted twice.
func (f *fleet) holds() *observer.Findings {
	f.t.Helper()
	found := f.observer.Holds()
	if found.Repeated()+found.Late > 0 || found.Promotions != f.promotions() {
		f.t.Errorf("%d promotions of %d; %d writes of targets were one too many, %d came late",
			found.Promotions, f.promotions(), found.Repeated(), found.Late)
	}
	for _, s := range f.apps {
		s.HasEveryReleaseOnce(f.released)
		s.WroteEachTargetOnce(len(f.released))
		f.reportedOnce(s)
	}
	return found
}

// reportedOnce checks that no two events of a promotion are the same. If the response to an
// event was lost, the event is sent again under its name, and the API server refuses it.
// A warning comes again when its cause does.
func (f *fleet) reportedOnce(s *env.Application) {
	f.t.Helper()
	times := map[string]int{}
	for _, event := range s.Events(s.Rollout()) {
		times[event]++
		if times[event] == 2 && strings.HasPrefix(event, corev1.EventTypeNormal) {
			f.t.Errorf("%s: an event was repeated: %s", s.Namespace, event)
		}
	}
}
