// SPDX-License-Identifier: Apache-2.0

// Package ownwrites tells a copy that a cache holds from what this process has
// written since.
package ownwrites

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Versions remembers what this process wrote, until its caches have seen it. It
// saves the requests that a pass on a stale copy would waste; that such a pass
// can do no harm is the work of the optimistic locks. The zero value is ready.
type Versions struct {
	mu       sync.Mutex
	versions map[types.UID]string
}

// Wrote remembers the object as the API server returned it from a write.
func (v *Versions) Wrote(object client.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.versions == nil {
		v.versions = map[types.UID]string{}
	}
	v.versions[object.GetUID()] = object.GetResourceVersion()
}

// Ahead reports whether this process wrote the object after the copy at hand
// was read.
func (v *Versions) Ahead(cached client.Object) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	written, ok := v.versions[cached.GetUID()]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), written)
	if err == nil && order < 0 {
		return true
	}
	delete(v.versions, cached.GetUID())
	return false
}
