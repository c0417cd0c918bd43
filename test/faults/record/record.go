// SPDX-License-Identifier: Apache-2.0

// Package record records every state of objects while a test runs. It watches the API
// server over connections of its own, also after the API server was away.
package record

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

const (
	// patience is how long the record may take to contain the present state.
	patience = time.Minute
	// pace is the time between two checks for that, and the time until a failed watch is
	// opened again.
	pace = 100 * time.Millisecond
)

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

// Recorder records every state of the objects of some kinds.
type Recorder struct {
	t         testing.TB
	client    client.WithWatch
	namespace string
	kinds     []client.ObjectList

	mu     sync.Mutex
	seen   []Sight
	latest map[types.UID]Sight
}

// Watch begins to record a namespace, starting with the present state of its objects. An
// empty text means all namespaces. It ends with the test.
func Watch(tb testing.TB, plane *controlplane.ControlPlane, namespace string, kinds ...client.ObjectList) *Recorder {
	tb.Helper()
	c, err := client.NewWithWatch(plane.RESTConfig(), client.Options{Scheme: plane.Client().Scheme()})
	if err != nil {
		tb.Fatal(err)
	}
	r := &Recorder{t: tb, client: c, namespace: namespace, kinds: kinds, latest: map[types.UID]Sight{}}
	for _, kind := range kinds {
		first := make(chan struct{})
		go r.follow(kind, sync.OnceFunc(func() { close(first) }))
		select {
		case <-first:
		case <-tb.Context().Done():
			tb.Fatal("the test is over before anything was recorded")
		}
	}
	return r
}

// follow lists the objects of a kind and watches their changes. It does so again when the
// watch cannot continue.
func (r *Recorder) follow(kind client.ObjectList, listed func()) {
	ctx := r.t.Context()
	for again := false; ctx.Err() == nil; again = true {
		list := kind.DeepCopyObject().(client.ObjectList)
		if err := r.client.List(ctx, list, client.InNamespace(r.namespace)); err != nil {
			pause(ctx)
			continue
		}
		r.noteAll(list, again)
		listed()
		for from := list.GetResourceVersion(); from != ""; pause(ctx) {
			from = r.watch(ctx, kind, from)
		}
	}
}

// watch notes the changes from a version on, until the watch ends. It returns the version
// from which to continue, or an empty text if that version is too old.
func (r *Recorder) watch(ctx context.Context, kind client.ObjectList, from string) string {
	options := &client.ListOptions{Namespace: r.namespace, Raw: &metav1.ListOptions{ResourceVersion: from, AllowWatchBookmarks: true}}
	watcher, err := r.client.Watch(ctx, kind.DeepCopyObject().(client.ObjectList), options)
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
			r.note(object, event.Type == watch.Deleted, false)
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
func (r *Recorder) noteAll(list client.ObjectList, again bool) {
	objects, err := meta.ExtractList(list)
	if err != nil {
		r.t.Errorf("read %T: %v", list, err)
	}
	there := map[types.UID]bool{}
	for _, item := range objects {
		object := item.(client.Object)
		there[object.GetUID()] = true
		r.note(object, false, again)
	}
	if again {
		r.noteGone(list, there)
	}
}

func (r *Recorder) noteGone(list client.ObjectList, there map[types.UID]bool) {
	for _, s := range r.present() {
		if sameKind(list, s.Object) && !there[s.Object.GetUID()] {
			gone := s.Object.DeepCopyObject().(client.Object)
			gone.SetResourceVersion(list.GetResourceVersion())
			r.note(gone, true, true)
		}
	}
}

func sameKind(list client.ObjectList, object client.Object) bool {
	return fmt.Sprintf("%T", list) == fmt.Sprintf("%TList", object)
}

func (r *Recorder) present() []Sight {
	r.mu.Lock()
	defer r.mu.Unlock()
	var there []Sight
	for _, s := range r.latest {
		if !s.Gone {
			there = append(there, s)
		}
	}
	return there
}

func (r *Recorder) note(object client.Object, gone, gap bool) {
	at, err := version(object)
	if err != nil {
		r.t.Error(err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, known := r.latest[object.GetUID()]; known && before.At >= at {
		return
	}
	s := Sight{At: at, Object: object, Gone: gone, Gap: gap}
	r.seen = append(r.seen, s)
	r.latest[object.GetUID()] = s
}

// Sights returns all states so far, in their order, once the record contains the present
// state of all objects.
func (r *Recorder) Sights() []Sight {
	r.t.Helper()
	for _, kind := range r.kinds {
		r.catchUp(kind)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := slices.Clone(r.seen)
	slices.SortStableFunc(seen, func(a, b Sight) int { return cmp.Compare(a.At, b.At) })
	return seen
}

func (r *Recorder) catchUp(kind client.ObjectList) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for {
		lacks := r.lacks(ctx, kind)
		if lacks == "" {
			return
		}
		if ctx.Err() != nil {
			r.t.Fatalf("the record of %T is never complete: %s", kind, lacks)
		}
		pause(ctx)
	}
}

// lacks returns a stored object whose state was not seen yet, or an object whose deletion
// was not, as text.
func (r *Recorder) lacks(ctx context.Context, kind client.ObjectList) string {
	list := kind.DeepCopyObject().(client.ObjectList)
	if err := r.client.List(ctx, list, client.InNamespace(r.namespace)); err != nil {
		return err.Error()
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return err.Error()
	}
	there := map[types.UID]bool{}
	for _, item := range objects {
		object := item.(client.Object)
		there[object.GetUID()] = true
		if lacks := r.lacksState(object); lacks != "" {
			return lacks
		}
	}
	return r.lacksDeletion(list, there)
}

func (r *Recorder) lacksState(object client.Object) string {
	at, err := version(object)
	if err != nil {
		return err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if seen := r.latest[object.GetUID()].At; seen < at {
		return fmt.Sprintf("%s at %d, seen at %d", client.ObjectKeyFromObject(object), at, seen)
	}
	return ""
}

// lacksDeletion is about objects that were seen before the list was made and are not in
// it. Without it, a record would be called complete while a deletion is still on its way.
func (r *Recorder) lacksDeletion(list client.ObjectList, there map[types.UID]bool) string {
	listed, err := version(list)
	if err != nil {
		return err.Error()
	}
	for _, s := range r.present() {
		if sameKind(list, s.Object) && !there[s.Object.GetUID()] && s.At <= listed {
			return fmt.Sprintf("the deletion of %s, seen at %d", client.ObjectKeyFromObject(s.Object), s.At)
		}
	}
	return ""
}

func version(of metav1.Common) (uint64, error) {
	at, err := strconv.ParseUint(of.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read a resourceVersion: %w", err)
	}
	return at, nil
}
