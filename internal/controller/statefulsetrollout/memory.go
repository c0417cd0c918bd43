// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/fluxrollouts/rollout-controller/internal/coordination/statefulsets"
)

// memory is kept about a group between two passes. A restart loses it. That costs
// requests and repeats events.
type memory struct {
	// last is the set that had the turn.
	last types.UID
	// deleted are pods that this controller has deleted and that the cache still shows.
	deleted map[types.UID]bool
	// unobserved is since when the status of a set was seen to be of an older generation.
	unobserved map[generation]time.Time
	// reported is what has been reported already.
	reported map[transition]bool
}

// generation is a generation of a set.
type generation struct {
	set    types.UID
	number int64
}

// memories contains the memories of all groups. The worker that has a group owns its
// memory.
type memories struct {
	mu  sync.Mutex
	all map[types.NamespacedName]*memory
}

func (m *memories) of(group types.NamespacedName) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[types.NamespacedName]*memory{}
	}
	if m.all[group] == nil {
		m.all[group] = &memory{deleted: map[types.UID]bool{}, unobserved: map[generation]time.Time{}, reported: map[transition]bool{}}
	}
	return m.all[group]
}

// unobservedSince returns since when the status of a set was seen to be of an older
// generation. It is zero if the status is of the present one.
func (m *memory) unobservedSince(set *statefulsets.Set, now time.Time) time.Time {
	key := generation{set.UID, set.Generation}
	if set.Observed() {
		return time.Time{}
	}
	if _, seen := m.unobserved[key]; !seen {
		m.unobserved[key] = now
	}
	return m.unobserved[key]
}

// prune drops the pods that are not shown any more, and the generations that are observed,
// or not the present ones any more.
func (m *memory) prune(sets []statefulsets.Set) {
	shown, waits := map[types.UID]bool{}, map[generation]bool{}
	for i := range sets {
		waits[generation{sets[i].UID, sets[i].Generation}] = !sets[i].Observed()
		for j := range sets[i].Pods {
			shown[sets[i].Pods[j].UID] = true
		}
	}
	maps.DeleteFunc(m.deleted, func(uid types.UID, _ bool) bool { return !shown[uid] })
	maps.DeleteFunc(m.unobserved, func(g generation, _ time.Time) bool { return !waits[g] })
}

func (m *memories) drop(group types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, group)
}

// After a refused eviction the group is retried after these delays. The available
// permissions do not include a watch on disruption budgets.
const (
	firstRefusal = time.Second
	lastRefusal  = time.Minute
)

// refusals increases the delays between refused evictions.
type refusals struct {
	once    sync.Once
	limiter workqueue.TypedRateLimiter[types.NamespacedName]
}

func (r *refusals) pauses() workqueue.TypedRateLimiter[types.NamespacedName] {
	r.once.Do(func() {
		r.limiter = workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRefusal, lastRefusal)
	})
	return r.limiter
}

// first reports whether the group has not been refused since the last call of over.
func (r *refusals) first(group types.NamespacedName) bool { return r.pauses().NumRequeues(group) == 0 }

func (r *refusals) wait(group types.NamespacedName) time.Duration { return r.pauses().When(group) }

func (r *refusals) over(group types.NamespacedName) { r.pauses().Forget(group) }
