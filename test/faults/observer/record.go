// SPDX-License-Identifier: Apache-2.0

// Package observer checks the Rollout controller from outside. It watches the API server
// over connections of its own, puts every state of every object in order, and checks each
// state against the promises. It does not know how the controller keeps them.
package observer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

const (
	// patience is how long the record may take to contain the present state.
	patience = time.Minute
	// pace is the time between two checks for that, and the time until a failed watch is
	// opened again.
	pace = 100 * time.Millisecond
)

// observed returns the kinds of which every state is recorded.
func observed() []client.ObjectList {
	return []client.ObjectList{
		&v1alpha1.RolloutList{}, &v1alpha1.HealthCheckList{},
		&sourcev1.OCIRepositoryList{}, &kustomizev1.KustomizationList{},
	}
}

// Sight is a state of an object.
type Sight struct {
	// At is the resourceVersion of the state. It is an etcd revision, and all kinds are
	// in one etcd. So it gives one order for all states.
	At     uint64
	Object client.Object
	// Gone is true if the object was deleted in this state.
	Gone bool
	// Gap is true if states between this one and the one before may not have been seen.
	Gap bool
}

// Observer records every state of the observed objects while its test runs.
type Observer struct {
	t      testing.TB
	client client.WithWatch

	mu     sync.Mutex
	seen   []Sight
	latest map[types.UID]Sight
}

// Watch begins to observe all namespaces, starting with the present state. It continues
// after the API server was away.
func Watch(tb testing.TB, plane *controlplane.ControlPlane) *Observer {
	tb.Helper()
	c, err := client.NewWithWatch(plane.RESTConfig(), client.Options{Scheme: plane.Client().Scheme()})
	if err != nil {
		tb.Fatal(err)
	}
	o := &Observer{t: tb, client: c, latest: map[types.UID]Sight{}}
	for _, kind := range observed() {
		first := make(chan struct{})
		go o.follow(kind, sync.OnceFunc(func() { close(first) }))
		select {
		case <-first:
		case <-tb.Context().Done():
			tb.Fatal("the test is over before anything was observed")
		}
	}
	return o
}

// follow lists the objects of a kind and watches their changes. It does so again when the
// watch cannot continue.
func (o *Observer) follow(kind client.ObjectList, listed func()) {
	ctx := o.t.Context()
	for again := false; ctx.Err() == nil; again = true {
		list := kind.DeepCopyObject().(client.ObjectList)
		if err := o.client.List(ctx, list); err != nil {
			pause(ctx)
			continue
		}
		o.noteAll(list, again)
		listed()
		for from := list.GetResourceVersion(); from != ""; pause(ctx) {
			from = o.watch(ctx, kind, from)
		}
	}
}

// watch notes the changes from a version on, until the watch ends. It returns the version
// from which to continue, or an empty text if that version is too old.
func (o *Observer) watch(ctx context.Context, kind client.ObjectList, from string) string {
	options := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: from, AllowWatchBookmarks: true}}
	watcher, err := o.client.Watch(ctx, kind.DeepCopyObject().(client.ObjectList), options)
	if err != nil {
		return unlessOver(ctx, from)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(client.Object)
		if event.Type == watch.Error || !ok {
			return ""
		}
		from = object.GetResourceVersion()
		if event.Type != watch.Bookmark {
			o.note(object, event.Type == watch.Deleted, false)
		}
	}
	return unlessOver(ctx, from)
}

func unlessOver(ctx context.Context, from string) string {
	if ctx.Err() != nil {
		return ""
	}
	return from
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(pace):
	}
}

// noteAll notes a list. Objects that were seen before and are not in it were deleted.
func (o *Observer) noteAll(list client.ObjectList, again bool) {
	objects, err := meta.ExtractList(list)
	if err != nil {
		o.t.Errorf("read %T: %v", list, err)
	}
	there := map[types.UID]bool{}
	for _, item := range objects {
		object := item.(client.Object)
		there[object.GetUID()] = true
		o.note(object, false, again)
	}
	if again {
		o.noteGone(list, there)
	}
}

func (o *Observer) noteGone(list client.ObjectList, there map[types.UID]bool) {
	for _, s := range o.present() {
		if sameKind(list, s.Object) && !there[s.Object.GetUID()] {
			gone := s.Object.DeepCopyObject().(client.Object)
			gone.SetResourceVersion(list.GetResourceVersion())
			o.note(gone, true, true)
		}
	}
}

func sameKind(list client.ObjectList, object client.Object) bool {
	return fmt.Sprintf("%T", list) == fmt.Sprintf("%TList", object)
}

func (o *Observer) present() []Sight {
	o.mu.Lock()
	defer o.mu.Unlock()
	var there []Sight
	for _, s := range o.latest {
		if !s.Gone {
			there = append(there, s)
		}
	}
	return there
}

func (o *Observer) note(object client.Object, gone, gap bool) {
	at, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		o.t.Errorf("read a resourceVersion: %v", err)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if before, known := o.latest[object.GetUID()]; known && before.At >= at {
		return
	}
	s := Sight{At: at, Object: object, Gone: gone, Gap: gap}
	o.seen = append(o.seen, s)
	o.latest[object.GetUID()] = s
}

// Sights returns all states so far, in their order, once the record contains the present
// state of all objects.
func (o *Observer) Sights() []Sight {
	o.t.Helper()
	for _, kind := range observed() {
		o.catchUp(kind)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	seen := slices.Clone(o.seen)
	slices.SortStableFunc(seen, func(a, b Sight) int { return cmp.Compare(a.At, b.At) })
	return seen
}

// Story checks all states so far.
func (o *Observer) Story() *Story {
	o.t.Helper()
	return Judge(o.Sights())
}

// Holds fails the test if a promise was broken so far, and returns the story.
func (o *Observer) Holds() *Story {
	o.t.Helper()
	story := o.Story()
	for _, broken := range story.Broken {
		o.t.Error(broken)
	}
	return story
}

func (o *Observer) catchUp(kind client.ObjectList) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), patience)
	defer cancel()
	for {
		lacks := o.lacks(ctx, kind)
		if lacks == "" {
			return
		}
		if ctx.Err() != nil {
			o.t.Fatalf("the record of %T is never complete: %s", kind, lacks)
		}
		pause(ctx)
	}
}

// lacks returns a stored object whose state was not seen yet, as text.
func (o *Observer) lacks(ctx context.Context, kind client.ObjectList) string {
	list := kind.DeepCopyObject().(client.ObjectList)
	if err := o.client.List(ctx, list); err != nil {
		return err.Error()
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return err.Error()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, item := range objects {
		object := item.(client.Object)
		at, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
		if seen := o.latest[object.GetUID()].At; err != nil || seen < at {
			return fmt.Sprintf("%s at %d, seen at %d", client.ObjectKeyFromObject(object), at, seen)
		}
	}
	return ""
}
