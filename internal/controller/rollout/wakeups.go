// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// wakeups reconciles Rollouts in time although their pass has failed. controller-runtime
// tries again only after the back-off of the error, which may end later than a bake. The
// zero value wakes no Rollout.
type wakeups struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func (w *wakeups) source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queue = queue
		return nil
	})
}

func (w *wakeups) wake(rollout reconcile.Request, after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil && after > 0 {
		w.queue.AddAfter(rollout, after)
	}
}
