// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownWrites remembers what this process wrote, until its caches have seen it.
// It saves the requests that a pass on a stale copy would waste; that such a
// pass can do no harm is the work of the optimistic locks.
type ownWrites struct {
	mu       sync.Mutex
	versions map[types.UID]string
}

// wrote remembers the object as the API server returned it from a write.
func (o *ownWrites) wrote(object client.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.versions == nil {
		o.versions = map[types.UID]string{}
	}
	o.versions[object.GetUID()] = object.GetResourceVersion()
}

// ahead reports whether this process wrote the object after the copy at hand
// was read.
func (o *ownWrites) ahead(cached client.Object) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	written, ok := o.versions[cached.GetUID()]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), written)
	if err == nil && order < 0 {
		return true
	}
	delete(o.versions, cached.GetUID())
	return false
}
