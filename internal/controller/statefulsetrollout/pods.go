// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// firstList is how long one pass waits for the first list of pods.
const firstList = 10 * time.Second

// podWatch begins to watch pods when they are needed for the first time. So a cluster
// without rollout groups has no cost.
type podWatch struct {
	cache      cache.Cache
	controller controller.Controller
	source     func() source.SyncingSource

	mu      sync.Mutex
	indexed bool
	first   *podList // nil before the watch has begun
}

// podList is the first list of pods of a watch.
type podList struct {
	// ended is closed once the list has arrived, or has failed with err.
	ended chan struct{}
	err   error
}

// begin waits until pods are watched. The watch continues after a timeout: if the first
// list takes too long, the next call waits for the same one.
func (w *podWatch) begin(ctx context.Context) error {
	list, err := w.start(ctx)
	if err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, firstList)
	defer cancel()
	select {
	case <-list.ended:
	case <-wait.Done():
		return fmt.Errorf("wait for the first list of pods: %w", wait.Err())
	}
	if list.err != nil {
		w.drop(list)
		return fmt.Errorf("list pods: %w", list.err)
	}
	return nil
}

// start begins to watch, unless the watch has begun before.
func (w *podWatch) start(ctx context.Context) (*podList, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first != nil {
		return w.first, nil
	}
	if !w.indexed {
		if err := w.cache.IndexField(ctx, &corev1.Pod{}, controllerUID, controllerOf); err != nil {
			return nil, fmt.Errorf("index pods by their controller: %w", err)
		}
		w.indexed = true
	}
	pods := w.source()
	if err := w.controller.Watch(pods); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	list := &podList{ended: make(chan struct{})}
	go func() {
		// A source that is not waited for any more gives up. The controller ends the
		// source when it ends itself.
		list.err = pods.WaitForSync(context.WithoutCancel(ctx))
		close(list.ended)
	}()
	w.first = list
	return list, nil
}

// drop makes the next call begin again.
func (w *podWatch) drop(list *podList) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first == list {
		w.first = nil
	}
}

func controllerOf(pod client.Object) []string {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}
