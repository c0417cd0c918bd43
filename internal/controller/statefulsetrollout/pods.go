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

// podWatch begins to watch pods when somebody needs it, so that a cluster without
// rollout groups does not pay for it.
type podWatch struct {
	cache      cache.Cache
	controller controller.Controller
	source     func() source.SyncingSource

	mu      sync.Mutex
	indexed bool
	begun   bool
}

// begin returns when pods are watched. If they cannot be, the next call tries
// again.
func (w *podWatch) begin(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun {
		return nil
	}
	if !w.indexed {
		if err := w.cache.IndexField(ctx, &corev1.Pod{}, controllerUID, controllerOf); err != nil {
			return fmt.Errorf("index pods by their controller: %w", err)
		}
		w.indexed = true
	}
	pods := w.source()
	if err := w.controller.Watch(pods); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	wait, cancel := context.WithTimeout(ctx, firstList)
	defer cancel()
	if err := pods.WaitForSync(wait); err != nil {
		return fmt.Errorf("wait for the first list of pods: %w", err)
	}
	w.begun = true
	return nil
}

func controllerOf(pod client.Object) []string {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}
