// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// Changes returns a source that wakes a controller when the results of Mode or Other
// change. It adds one request for each namespace that has coordinations; the request has
// the name of the namespace. The controller does not start before the results are known.
func (a *Installed) Changes() source.Source { return &a.changes }

// situation is everything that the results of Installed depend on.
type situation struct{ policy, webhook, whyNoPolicy, whyNoWebhook, other string }

// changes is the source of the requests that follow a change of the situation.
type changes struct {
	coordinations client.Reader
	situation     func() situation
	awaited       []<-chan struct{}

	mu    sync.Mutex
	wakes []chan struct{}
}

// Start wakes the controller at every change until ctx ends.
func (c *changes) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	wake := make(chan struct{}, 1)
	c.mu.Lock()
	c.wakes = append(c.wakes, wake)
	c.mu.Unlock()
	go c.follow(ctx, wake, queue)
	return nil
}

// WaitForSync waits until the situation is known.
func (c *changes) WaitForSync(ctx context.Context) error {
	for _, known := range c.awaited {
		select {
		case <-known:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// look wakes the goroutine of every controller.
func (c *changes) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, wake := range c.wakes {
		select {
		case wake <- struct{}{}:
		default: // a check is already due
		}
	}
}

func (c *changes) follow(ctx context.Context, wake <-chan struct{}, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	var reported situation
	for {
		if now := c.situation(); now != reported && c.enqueue(ctx, queue) {
			reported = now
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return
		}
	}
}

// enqueue adds each namespace that has coordinations. It returns false if they cannot be
// listed.
func (c *changes) enqueue(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) bool {
	list := &v1.DeploymentCoordinationList{}
	if err := c.coordinations.List(ctx, list, unreadable.Left{}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list DeploymentCoordinations")
		return false
	}
	namespaces := sets.New[string]()
	for i := range list.Items {
		namespaces.Insert(list.Items[i].Namespace)
	}
	for namespace := range namespaces {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}})
	}
	return true
}
