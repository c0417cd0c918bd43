// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
)

// perObject remembers a value for each object that a Rollout depends on. The values are
// lost with the process. The zero value is ready to use.
type perObject[T any] struct {
	mu  sync.Mutex
	all map[types.NamespacedName]map[types.UID]*T
}

// of returns the value for an object; nil if there is none.
func (m *perObject[T]) of(rollout types.NamespacedName, object client.Object) *T {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[rollout][object.GetUID()]
}

// put remembers a value for an object; nil removes it.
func (m *perObject[T]) put(rollout types.NamespacedName, object client.Object, next *T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case next == nil:
		delete(m.all[rollout], object.GetUID())
		return
	case m.all == nil:
		m.all = map[types.NamespacedName]map[types.UID]*T{}
	}
	if m.all[rollout] == nil {
		m.all[rollout] = map[types.UID]*T{}
	}
	m.all[rollout][object.GetUID()] = next
}

// forgetBut drops the values of all other targets of the Rollout.
func (m *perObject[T]) forgetBut(rollout types.NamespacedName, found []targets.Target) {
	m.keep(rollout, func(uid types.UID) bool {
		return slices.ContainsFunc(found, func(t targets.Target) bool { return t.Object().GetUID() == uid })
	})
}

// keep drops the values of all other objects of the Rollout.
func (m *perObject[T]) keep(rollout types.NamespacedName, wanted func(types.UID) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.all[rollout], func(uid types.UID, _ *T) bool { return !wanted(uid) })
	if len(m.all[rollout]) == 0 {
		delete(m.all, rollout)
	}
}

// forget drops everything that is remembered of a Rollout that was deleted, but for the
// targets that still name it (orphans). This is the one place for it. Nothing of it is
// needed to be right: a restart loses it all, and costs some requests.
func (r *Reconciler) forget(rollout types.NamespacedName) {
	r.forgetInactive(rollout)
	r.conflicts.forgetBut(rollout, nil)
	r.rejections.forgetBut(rollout, nil)
	r.resets.forgetBut(rollout, nil)
	r.mirrors.forgetBut(rollout, nil)
	r.targetLooks.forget(rollout.Namespace)
}

// forgetInactive drops what is remembered only of a Rollout that is reconciled. One that
// is suspended or being deleted waits for no metadata, and no metric counts it.
func (r *Reconciler) forgetInactive(rollout types.NamespacedName) {
	images{r.Metadata}.forget(rollout)
	elsewhere{r.Reports}.forget(rollout)
	r.unwritable.forget(rollout)
	r.culprits.forget(rollout)
	r.reported.forget(rollout)
	r.Metrics.Forget(rollout)
}
