// SPDX-License-Identifier: Apache-2.0

// Package background runs what no reconciler waits for, such as requests to registries: it
// has the queue, the workers, and the way back to a reconciler. Its users know what is due.
package background

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fluxrollouts/rollout-controller/internal/fair"
)

// Workers is how many keys of a queue are served at a time. The namespaces share them: a
// registry that does not answer blocks a worker for seconds, and this must not delay what
// others wait for.
const Workers = 4

// Queue contains the keys for which something is due.
type Queue[K comparable] = workqueue.TypedRateLimitingInterface[K]

// NewQueue returns a queue. The function returns the namespace of a key. The pauses are those
// of AddRateLimited.
func NewQueue[K comparable](namespace func(K) string, firstRetry, lastRetry time.Duration, clock clock.WithTicker) Queue[K] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[K](firstRetry, lastRetry)
	return fair.NewQueueOf(namespace, Workers, limiter, workqueue.TypedRateLimitingQueueConfig[K]{Clock: clock})
}

// Serve calls do for each key until ctx ends. It returns when the last call has ended.
func Serve[K comparable](ctx context.Context, queue Queue[K], do func(context.Context, K)) {
	var running sync.WaitGroup
	for range Workers {
		running.Go(func() {
			for key, end := queue.Get(); !end; key, end = queue.Get() {
				if ctx.Err() == nil {
					do(ctx, key)
				}
				queue.Done(key)
			}
		})
	}
	<-ctx.Done()
	queue.ShutDown()
	running.Wait()
}

// Waker reconciles objects because of what has ended. Add its Source to their controller. It
// wakes nothing until that runs.
type Waker struct {
	queue atomic.Pointer[Queue[reconcile.Request]]
}

// Source returns the source of the objects that are woken.
func (w *Waker) Source() source.Source {
	return source.Func(func(_ context.Context, queue Queue[reconcile.Request]) error {
		w.queue.Store(&queue)
		return nil
	})
}

// Wake reconciles an object at once.
func (w *Waker) Wake(object types.NamespacedName) {
	if queue := w.queue.Load(); queue != nil {
		(*queue).Add(reconcile.Request{NamespacedName: object})
	}
}

// WakeAfter reconciles an object after a pause.
func (w *Waker) WakeAfter(object types.NamespacedName, pause time.Duration) {
	if queue := w.queue.Load(); queue != nil {
		(*queue).AddAfter(reconcile.Request{NamespacedName: object}, pause)
	}
}
