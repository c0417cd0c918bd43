// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// NewQueue returns what creates the queue of a controller whose workers are shared by all
// namespaces. Use it in controller.Options. Cluster-scoped objects count as one namespace.
func NewQueue(workers int) func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	of := func(request reconcile.Request) string { return request.Namespace }
	return func(controller string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return NewQueueOf(of, workers, limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: controller})
	}
}

// NewQueueOf returns a queue of items for so many workers. The function returns the
// namespace of an item. The namespaces take turns, and share the workers: see
// [share.allows]. An item that may not begin yet stays in the queue, and occupies no
// worker. When the queue is shut down, such items are dropped.
func NewQueueOf[T comparable](
	namespace func(T) string, workers int, limiter workqueue.TypedRateLimiter[T], config workqueue.TypedRateLimitingQueueConfig[T],
) workqueue.TypedRateLimitingInterface[T] {
	q := &queue[T]{namespace: namespace, share: share{workers: max(workers, 1), of: map[string]int{}}}
	q.changed.L = &q.mu
	q.TypedInterface = workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[T]{
		Name: config.Name, Clock: config.Clock, Queue: order[T]{q},
	})
	config.DelayingQueue = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[T]{
		Name: config.Name, Clock: config.Clock, Queue: q,
	})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, config)
}

// queue is a workqueue whose workers wait here until an item may begin. The workqueue
// knows which items are under way, and measures them.
type queue[T comparable] struct {
	workqueue.TypedInterface[T]
	namespace func(T) string

	mu      sync.Mutex
	changed sync.Cond
	turns   Turns[T]
	share   share
	chosen  []T // what workers are about to get, one for each of them
	ended   bool
}

// Get waits until an item may begin.
func (q *queue[T]) Get() (item T, shutdown bool) {
	q.choose()
	return q.TypedInterface.Get()
}

func (q *queue[T]) choose() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.ended {
		if item, ok := q.turns.popAllowed(q.share.allows); ok {
			q.share.add(q.namespace(item), 1)
			q.chosen = append(q.chosen, item)
			q.changed.Signal() // another worker may find one, too
			return
		}
		q.changed.Wait()
	}
}

// Done ends an item. Its namespace may have another worker now.
func (q *queue[T]) Done(item T) {
	q.mu.Lock()
	q.share.add(q.namespace(item), -1)
	q.changed.Signal()
	q.mu.Unlock()
	q.TypedInterface.Done(item)
}

// Len returns how many items wait.
func (q *queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.turns.Len() + len(q.chosen)
}

// ShutDown ends the workers.
func (q *queue[T]) ShutDown() {
	q.end()
	q.TypedInterface.ShutDown()
}

// ShutDownWithDrain ends the workers, and waits for the items that are under way.
func (q *queue[T]) ShutDownWithDrain() {
	q.end()
	q.TypedInterface.ShutDownWithDrain()
}

func (q *queue[T]) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.changed.Broadcast()
}

// order is the order of a workqueue, which adds each item only once.
type order[T comparable] struct{ *queue[T] }

// Touch does nothing: an item that is already there keeps its place.
func (o order[T]) Touch(T) {}

// Push adds an item.
func (o order[T]) Push(item T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.turns.Push(o.namespace(item), item)
	o.changed.Signal()
}

// Len returns how many items a worker may get at once.
func (o order[T]) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.chosen)
}

// Pop returns an item that a worker waits for.
func (o order[T]) Pop() T {
	o.mu.Lock()
	defer o.mu.Unlock()
	var none T
	item := o.chosen[0]
	o.chosen[0] = none
	o.chosen = o.chosen[1:]
	return item
}

// share counts the workers of each namespace.
type share struct {
	workers, busy int
	of            map[string]int
}

// allows reports whether a namespace may have another worker: only while more workers are
// free than it has. Alone it has half of them, the next namespace half of the others, and so
// on. So there is a free one for whoever has none, unless a tenant has several namespaces.
func (s *share) allows(namespace string) bool { return s.of[namespace] < s.workers-s.busy }

func (s *share) add(namespace string, n int) {
	s.busy += n
	if s.of[namespace] += n; s.of[namespace] == 0 {
		delete(s.of, namespace)
	}
}
