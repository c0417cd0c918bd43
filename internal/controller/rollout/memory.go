// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
)

// memory is what the passes over a Rollout leave for the next one. Nothing of it is needed
// to be right: a restart loses it all, and costs some requests. The zero value is empty.
type memory struct {
	mu  sync.Mutex
	all map[types.NamespacedName]*remembered
}

// remembered is the memory of one Rollout. There is only one pass over a Rollout at a time,
// and only that pass uses it.
type remembered struct {
	conflicts  perObject[targetConflict]
	rejections perObject[rejectedWrite]
	resets     perObject[string]    // why the API server rejects the reset of a HealthCheck
	mirrors    perObject[time.Time] // when the mirror gate of the Rollout was created
	orphans    perObject[sighting]
	culprits   culprits // those that the stored status names
	unwritable string   // the version of the Rollout that does not accept a status
	reported   reportedFailure
}

// of returns the memory of a Rollout.
func (m *memory) of(rollout types.NamespacedName) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[types.NamespacedName]*remembered{}
	}
	if m.all[rollout] == nil {
		m.all[rollout] = &remembered{}
	}
	return m.all[rollout]
}

// settle ends a pass: a Rollout of which nothing is remembered takes no room.
func (m *memory) settle(rollout types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if of := m.all[rollout]; of != nil && of.isEmpty() {
		delete(m.all, rollout)
	}
}

func (m *remembered) isEmpty() bool {
	return len(m.conflicts)+len(m.rejections)+len(m.resets)+len(m.mirrors)+len(m.orphans)+len(m.culprits)+len(m.unwritable) == 0 &&
		m.reported.isSettled()
}

// forgetInactive drops what is remembered only of a Rollout that is reconciled.
func (m *remembered) forgetInactive() {
	m.culprits, m.unwritable, m.reported = nil, "", reportedFailure{}
}

// forget drops everything about a Rollout that was deleted, except the targets that still
// name it.
func (m *remembered) forget() { *m = remembered{orphans: m.orphans} }

// perObject is a value for each object that a Rollout depends on.
type perObject[T any] map[types.UID]*T

// of returns the value for an object; nil if there is none.
func (p perObject[T]) of(object client.Object) *T { return p[object.GetUID()] }

// put remembers a value for an object; nil removes it.
func (p *perObject[T]) put(object client.Object, next *T) {
	switch {
	case next == nil:
		delete(*p, object.GetUID())
		return
	case *p == nil:
		*p = perObject[T]{}
	}
	(*p)[object.GetUID()] = next
}

// forgetBut drops the values of all other targets.
func (p perObject[T]) forgetBut(found []targets.Target) {
	maps.DeleteFunc(p, func(uid types.UID, _ *T) bool {
		return !slices.ContainsFunc(found, func(t targets.Target) bool { return t.Object().GetUID() == uid })
	})
}

// forget drops what is remembered of a Rollout that was deleted.
func (r *Reconciler) forget(rollout types.NamespacedName) {
	r.forgetInactive(rollout)
	r.memory.of(rollout).forget()
	r.targetLists.forget(rollout.Namespace)
}

// forgetInactive drops what is remembered only of a Rollout that is reconciled. One that
// is suspended or being deleted waits for no metadata, and no metric counts it.
func (r *Reconciler) forgetInactive(rollout types.NamespacedName) {
	r.memory.of(rollout).forgetInactive()
	images{r.Metadata}.forget(rollout)
	remote{r.Reports}.forget(rollout)
	r.Metrics.Forget(rollout)
}
