// SPDX-License-Identifier: Apache-2.0

// Package expectations detects copies in a cache that are older than what this process
// has written since.
package expectations

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Versions remembers what this process wrote until its caches have received it. This
// saves the requests that a pass on a stale copy would waste. Optimistic locks make sure
// that such a pass does no harm. The zero value is ready to use.
type Versions struct {
	mu       sync.Mutex
	versions *lru.Cache
}

// most is how many objects are remembered: those that were written last. The response to
// a write may arrive after the event that its object was deleted. After that, no call
// asks about the object.
const most = 1 << 16

func (v *Versions) known() *lru.Cache {
	if v.versions == nil {
		v.versions = lru.New(most)
	}
	return v.versions
}

// Wrote remembers the object as the API server returned it from a write.
func (v *Versions) Wrote(object client.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known().Add(object.GetUID(), object.GetResourceVersion())
}

// gone is the version of an object that was deleted: each copy of it is older.
const gone = ""

// Delete deletes the object, and remembers that. One that is gone already is no error. Ask
// Stale first: the cache may still show what was deleted.
func (v *Versions) Delete(ctx context.Context, w client.Writer, object client.Object) error {
	uid := object.GetUID()
	if err := client.IgnoreNotFound(w.Delete(ctx, object, client.Preconditions{UID: &uid})); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known().Add(uid, gone)
	return nil
}

// Stale reports whether this process wrote or deleted the object after the given copy was
// read.
func (v *Versions) Stale(cached client.Object) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	written, ok := v.known().Get(cached.GetUID())
	if !ok || written == gone {
		return ok
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), written.(string))
	if err == nil && order < 0 {
		return true
	}
	v.known().Remove(cached.GetUID())
	return false
}

// ForgetGone forgets each object for which a delete event arrives. It lets all events
// pass.
func (v *Versions) ForgetGone() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.known().Remove(e.Object.GetUID())
		return true
	}}
}

// Len returns how many objects are remembered.
func (v *Versions) Len() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.known().Len()
}
