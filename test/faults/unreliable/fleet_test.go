// SPDX-License-Identifier: Apache-2.0

// Package unreliable lets requests fail at random, and watches break, while
// releases are promoted by the controller and deployed by Flux.
package unreliable

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/stage"
	"github.com/fluxrollouts/rollout-controller/test/faults/observer"
	"github.com/fluxrollouts/rollout-controller/test/faults/wire"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// fleet are applications whose releases one controller promotes, which reaches the
// API server through a wire.
type fleet struct {
	t        *testing.T
	plane    *stage.Plane
	wire     *wire.Wire
	observer *observer.Observer
	apps     []*stage.Stage
	released []string
	// restarts counts how often the controller had ended and was started again, as
	// a Deployment does.
	restarts atomic.Int32
}

// newFleet starts the controller and creates applications. Every third has no
// bake, every third a bake, and every third a HealthCheck as well.
func newFleet(t *testing.T, size int) *fleet {
	t.Helper()
	f := &fleet{t: t}
	setting := stage.Setting{
		Options: controlplane.Options{Flux: true, ImageScanner: true}, Between: f.connect,
		Args: []string{"--max-retry-delay=1s"}, // rather than 30 s, to save time
	}
	f.plane = setting.For(t)
	f.keepRunning()
	f.observer = observer.Watch(t, f.plane.ControlPlane)
	for i := range size {
		f.apps = append(f.apps, f.raise(i%3))
	}
	return f
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

// keepRunning starts the controller again whenever it has ended.
func (f *fleet) keepRunning() {
	ctx, stop := context.WithCancel(f.t.Context())
	var group sync.WaitGroup
	f.t.Cleanup(func() { stop(); group.Wait() })
	group.Go(func() {
		for ctx.Err() == nil {
			if _ = f.plane.Controller.Wait(ctx); ctx.Err() != nil {
				return
			}
			f.restarts.Add(1)
			if err := f.plane.Controller.Start(ctx); err != nil {
				f.t.Error(err)
				return
			}
		}
	})
}

func (f *fleet) raise(kind int) *stage.Stage {
	f.t.Helper()
	s := stage.New(f.t, f.plane)
	objects := s.Flux(f.plane.Registry.Host())
	objects[len(objects)-1].SetAnnotations(map[string]string{
		v1alpha1.SubstituteAnnotationPrefix + "VERSION" + v1alpha1.SubstituteAnnotationSuffix: s.Name,
	})
	s.Create(objects...)
	options := []func(*v1alpha1.RolloutSpec){
		func(*v1alpha1.RolloutSpec) {},
		func(spec *v1alpha1.RolloutSpec) { spec.BakeTime = &metav1.Duration{Duration: time.Second} },
		scenario.App{Name: s.Name}.Baked(time.Second, time.Hour),
	}
	s.Create(s.HealthCheck(), s.Rollout(options[kind]))
	return s
}

// round releases the next version everywhere, and waits until it has succeeded.
func (f *fleet) round() {
	f.t.Helper()
	version := fmt.Sprintf("1.%d.0", len(f.released))
	f.released = append(f.released, version)
	for _, s := range f.apps {
		s.Publish(s.ConfigRelease(version))
	}
	for _, s := range f.apps {
		s.AwaitState(version, v1alpha1.BakeSucceeded)
	}
}

// promotions counts those that there must have been.
func (f *fleet) promotions() int { return len(f.apps) * len(f.released) }

// holds checks what must have come of it: the history is that of a run without
// faults, each target was written once for each release, and nothing was told
// twice.
func (f *fleet) holds() *observer.Story {
	f.t.Helper()
	story := f.observer.Holds()
	if story.Repeated()+story.Late > 0 || story.Promotions != f.promotions() {
		f.t.Errorf("%d promotions of %d; %d writes of targets were one too many, %d came late",
			story.Promotions, f.promotions(), story.Repeated(), story.Late)
	}
	var want []string
	for i, version := range f.released {
		want = append([]string{fmt.Sprintf("%d %s Succeeded", i+1, version)}, want...)
	}
	for _, s := range f.apps {
		if diff := cmp.Diff(want, stage.History(s.Live())); diff != "" {
			f.t.Errorf("%s: history (-want +got):\n%s", s.Namespace, diff)
		}
		repository, kustomization := s.OCIRepository(""), s.Kustomization()
		s.Read(repository)
		s.Read(kustomization)
		if once := int64(len(f.released) + 1); repository.Generation != once || kustomization.Generation != once {
			f.t.Errorf("%s: the targets have generations %d and %d, want %d", s.Namespace, repository.Generation, kustomization.Generation, once)
		}
		f.toldOnce(s)
	}
	return story
}

// toldOnce: no event of a promotion says the same twice. One whose answer was lost
// is sent again under its name, which the API server refuses. Warnings come again
// when what they warn of does.
func (f *fleet) toldOnce(s *stage.Stage) {
	f.t.Helper()
	times := map[string]int{}
	for _, event := range s.Events(s.Rollout()) {
		times[event]++
		if times[event] == 2 && strings.HasPrefix(event, corev1.EventTypeNormal) {
			f.t.Errorf("%s: it was told twice: %s", s.Namespace, event)
		}
	}
}
