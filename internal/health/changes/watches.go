// SPDX-License-Identifier: Apache-2.0

// Package changes reports when an object of an inventory changes. It watches the metadata
// of a kind as long as the kind has users.
package changes

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
)

// refusedFor is how long a kind is not watched again after its watch was refused.
const refusedFor = 10 * time.Minute

// Watches watches kinds on behalf of users. A kind that may not be watched, or is no
// longer served, affects neither other kinds nor any caller.
type Watches struct {
	// Client lists and watches.
	Client metadata.Interface
	// Changed is called with what applied the object that has changed. It is called from
	// the watch of a kind and must not block.
	Changed func(ctx context.Context, by kustomization.Subject)
	// Lost is called with the users of a kind whose watch was refused.
	Lost func(users []types.NamespacedName)
	// Now is the clock.
	Now func() time.Time

	mu      sync.Mutex
	ctx     context.Context // the life of the watches, which contexts of callers must not end
	kinds   map[part]*kind
	running sync.WaitGroup
}

// part of a kind: its objects that Kustomizations, or that HelmReleases, have applied.
type part struct {
	schema.GroupVersionResource
	by string // the kind of a kustomization.Subject
}

// kind is watched while informer is set. Otherwise it is not watched until retryAt.
type kind struct {
	users    sets.Set[types.NamespacedName]
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
	retryAt  time.Time
}

// Start allows watches to begin, until ctx ends. It does not block.
func (w *Watches) Start(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx = ctx
	for of, k := range w.kinds {
		w.startLocked(of, k)
	}
}

// Wait blocks until every watch has ended, after the context of Start has ended.
func (w *Watches) Wait() { w.running.Wait() }

// Use sets the kinds that a user depends on from now on, as far as a Subject of the kind by
// has applied them, and reports whether changes to all of them are reported. It never waits: a new kind counts as not watched yet. Once it
// is watched, its objects are reported as if they had changed.
func (w *Watches) Use(user types.NamespacedName, by string, resources []schema.GroupVersionResource) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	parts := make([]part, 0, len(resources))
	for _, resource := range resources {
		parts = append(parts, part{resource, by})
	}
	w.dropLocked(user, parts)
	all := true
	for _, of := range parts {
		k := w.kindLocked(of)
		k.users.Insert(user)
		w.startLocked(of, k)
		all = all && k.informer != nil && k.informer.HasSynced()
	}
	return all
}

// Drop records that a user depends on no kind any more.
func (w *Watches) Drop(user types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropLocked(user, nil)
}

// dropLocked ends the watches that have no user any more.
func (w *Watches) dropLocked(user types.NamespacedName, but []part) {
	for of, k := range w.kinds {
		if slices.Contains(but, of) {
			continue
		}
		if k.users.Delete(user); k.users.Len() == 0 {
			k.end()
			delete(w.kinds, of)
		}
	}
}

func (w *Watches) kindLocked(of part) *kind {
	k := w.kinds[of]
	if k == nil {
		k = &kind{users: sets.New[types.NamespacedName]()}
		if w.kinds == nil {
			w.kinds = map[part]*kind{}
		}
		w.kinds[of] = k
	}
	return k
}

func (w *Watches) startLocked(of part, k *kind) {
	if w.ctx == nil || w.ctx.Err() != nil || k.informer != nil || w.Now().Before(k.retryAt) {
		return
	}
	ctx, stop := context.WithCancel(w.ctx)
	informer := w.informer(ctx, of, k)
	k.informer, k.stop = informer, stop
	w.running.Go(func() { informer.RunWithContext(ctx) })
}

// refused ends the watch of a kind. Its users have to be notified, because they rely on
// events of changes.
func (w *Watches) refused(of part, k *kind) {
	w.mu.Lock()
	k.end()
	k.retryAt = w.Now().Add(refusedFor)
	var users []types.NamespacedName
	if w.kinds[of] == k {
		users = k.users.UnsortedList()
	}
	w.mu.Unlock()
	w.Lost(users)
}

func (k *kind) end() {
	if k.informer != nil {
		k.stop()
		k.informer, k.stop = nil, nil
	}
}
