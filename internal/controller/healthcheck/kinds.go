// SPDX-License-Identifier: Apache-2.0

package healthcheck

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

// kindWatches watch kinds of the objects in inventories on behalf of checks, the users, as
// long as a kind has one. A kind that may not be watched, or is no longer served, affects
// neither other kinds nor any caller.
type kindWatches struct {
	client metadata.Interface // lists and watches
	// changed is called with what applied the object that has changed. It is called from
	// the watch of a kind and must not block.
	changed func(ctx context.Context, by kustomization.Subject)
	// lost is called with the users of a kind whose watch was refused.
	lost func(users []types.NamespacedName)
	now  func() time.Time

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

// start allows watches to begin, until ctx ends. It does not block.
func (w *kindWatches) start(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx = ctx
	for of, k := range w.kinds {
		w.startLocked(of, k)
	}
}

// use sets the kinds that a user depends on from now on, as far as a Subject of the kind by
// has applied them, and reports whether changes to all of them are reported. It never waits:
// a new kind counts as not watched yet. Once it is watched, its objects are reported as if they had changed.
func (w *kindWatches) use(user types.NamespacedName, by string, resources []schema.GroupVersionResource) bool {
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

// drop records that a user depends on no kind any more.
func (w *kindWatches) drop(user types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropLocked(user, nil)
}

// dropLocked ends the watches that have no user any more.
func (w *kindWatches) dropLocked(user types.NamespacedName, but []part) {
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

func (w *kindWatches) kindLocked(of part) *kind {
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

func (w *kindWatches) startLocked(of part, k *kind) {
	if w.ctx == nil || w.ctx.Err() != nil || k.informer != nil || w.now().Before(k.retryAt) {
		return
	}
	ctx, stop := context.WithCancel(w.ctx)
	informer := w.informer(ctx, of, k)
	k.informer, k.stop = informer, stop
	w.running.Go(func() { informer.RunWithContext(ctx) })
}

// refused ends the watch of a kind. Its users have to be notified, because they rely on
// events of changes.
func (w *kindWatches) refused(of part, k *kind) {
	w.mu.Lock()
	k.end()
	k.retryAt = w.now().Add(refusedFor)
	var users []types.NamespacedName
	if w.kinds[of] == k {
		users = k.users.UnsortedList()
	}
	w.mu.Unlock()
	w.lost(users)
}

func (k *kind) end() {
	if k.informer != nil {
		k.stop()
		k.informer, k.stop = nil, nil
	}
}
