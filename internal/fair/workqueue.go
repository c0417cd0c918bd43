// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// NewQueue returns the queue of a controller whose workers are shared by all namespaces.
// Use it in controller.Options. Cluster-scoped objects count as one namespace.
func NewQueue(controller string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	of := func(request reconcile.Request) string { return request.Namespace }
	return NewQueueOf(of, limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: controller})
}

// NewQueueOf returns a queue of items. The function returns the namespace of an item.
func NewQueueOf[T comparable](
	namespace func(T) string, limiter workqueue.TypedRateLimiter[T], config workqueue.TypedRateLimitingQueueConfig[T],
) workqueue.TypedRateLimitingInterface[T] {
	config.DelayingQueue = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[T]{
		Name: config.Name, Clock: config.Clock,
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[T]{
			Name: config.Name, Clock: config.Clock, Queue: &inTurns[T]{namespace: namespace},
		}),
	})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, config)
}

// inTurns is the order of a workqueue. The workqueue locks it and adds each item only
// once.
type inTurns[T comparable] struct {
	namespace func(T) string
	turns     Turns[T]
}

// Touch does nothing: an item that is already there keeps its place.
func (q *inTurns[T]) Touch(T) {}

// Push adds an item.
func (q *inTurns[T]) Push(item T) { q.turns.Push(q.namespace(item), item) }

// Len returns how many items wait.
func (q *inTurns[T]) Len() int { return q.turns.Len() }

// Pop removes and returns the next item. A workqueue only calls it if there is one.
func (q *inTurns[T]) Pop() T {
	item, _ := q.turns.Pop()
	return item
}
