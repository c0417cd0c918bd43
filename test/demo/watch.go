// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientgocache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

// ofReleases are the kinds whose objects show what happens to releases.
var ofReleases = []client.Object{
	&imagev1.ImagePolicy{}, &v1alpha1.Rollout{}, &v1alpha1.HealthCheck{}, &sourcev1.OCIRepository{},
	&kustomizev1.Kustomization{}, &appsv1.Deployment{}, &corev1.Event{},
}

// change is a change of an object. before is nil if the object is new.
type change struct{ before, after client.Object }

// watch sends the changes of objects of some kinds in a namespace until ctx ends. It
// returns after it has set up the watches, and returns a function that waits for their
// end.
func watch(ctx context.Context, config *rest.Config, scheme *runtime.Scheme, namespace string, kinds []client.Object) (<-chan change, func(), error) {
	objects, err := cache.New(config, cache.Options{
		Scheme: scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("prepare to watch: %w", err)
	}
	changes := make(chan change)
	var group sync.WaitGroup
	group.Go(func() { _ = objects.Start(ctx) })
	for _, kind := range kinds {
		informer, err := objects.GetInformer(ctx, kind)
		if err != nil {
			return nil, nil, fmt.Errorf("watch %T: %w", kind, err)
		}
		if _, err := informer.AddEventHandler(forward(ctx, changes)); err != nil {
			return nil, nil, fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	return changes, group.Wait, nil
}

// forward sends the events of an informer.
func forward(ctx context.Context, to chan<- change) clientgocache.ResourceEventHandler {
	send := func(before, after client.Object) {
		select {
		case to <- change{before, after}:
		case <-ctx.Done():
		}
	}
	return clientgocache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { send(nil, object.(client.Object)) },
		UpdateFunc: func(before, after any) {
			was, is := before.(client.Object), after.(client.Object)
			if was.GetResourceVersion() != is.GetResourceVersion() {
				send(was, is)
			}
		},
	}
}

// sights are the newest versions of the scenario's objects that were seen. An object that
// was never seen is empty.
type sights struct {
	imagePolicy   imagev1.ImagePolicy
	rollout       v1alpha1.Rollout
	healthCheck   v1alpha1.HealthCheck
	ociRepository sourcev1.OCIRepository
	kustomization kustomizev1.Kustomization
	deployment    appsv1.Deployment
	workloads     workloads
	quarantine    v1alpha1.ReleaseQuarantine
}

func (s *sights) see(object client.Object) {
	switch o := object.(type) {
	case *imagev1.ImagePolicy:
		s.imagePolicy = *o
	case *v1alpha1.Rollout:
		s.rollout = *o
	case *v1alpha1.HealthCheck:
		s.healthCheck = *o
	case *v1alpha1.ReleaseQuarantine:
		s.quarantine = *o
	case *sourcev1.OCIRepository:
		s.ociRepository = *o
	case *kustomizev1.Kustomization:
		s.kustomization = *o
	case *appsv1.Deployment:
		s.deployment = *o
		s.workloads = s.workloads.with(o, workload.Deployment(o))
	case *appsv1.StatefulSet:
		s.workloads = s.workloads.with(o, workload.StatefulSet(o))
	}
}

// observer sees the changes one by one and shows them. Others can wait for an expectation.
type observer struct {
	show func(...line)

	mu      sync.Mutex
	seen    sights
	changed chan struct{} // closed at the next change
}

func newObserver(show func(...line)) *observer {
	return &observer{show: show, changed: make(chan struct{})}
}

// run is the only loop that shows changes.
func (w *observer) run(ctx context.Context, changes <-chan change) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-changes:
			w.show(describe(c.before, c.after)...)
			w.remember(c.after)
		}
	}
}

func (w *observer) remember(object client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.see(object)
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *observer) look() (sights, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen, w.changed
}

// await waits until an expectation is met. If ctx ends first, it returns what was seen
// instead.
func (w *observer) await(ctx context.Context, e expectation) error {
	for {
		seen, changed := w.look()
		lacks := e.lacks(&seen)
		if lacks == "" {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("expected: %s\n      seen: %s\n       end: %w", e.what, lacks, context.Cause(ctx))
		}
	}
}

// stays makes sure that an expectation stays met for the given time.
func (w *observer) stays(ctx context.Context, lasting time.Duration, e expectation) error {
	over := time.After(lasting)
	for {
		seen, changed := w.look()
		if lacks := e.lacks(&seen); lacks != "" {
			return fmt.Errorf("expected to stay: %s\n      seen: %s", e.what, lacks)
		}
		select {
		case <-changed:
		case <-over:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// settle waits until nothing has happened for a moment. Thus the last lines about one
// release come before the first lines about the next.
func (w *observer) settle(ctx context.Context) {
	const moment, most = 500 * time.Millisecond, 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		_, changed := w.look()
		select {
		case <-changed:
		case <-time.After(moment):
			return
		case <-ctx.Done():
			return
		}
	}
}
