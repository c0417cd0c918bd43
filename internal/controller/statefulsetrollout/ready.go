// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// readyLimit bounds how long a probe waits for the cache.
const readyLimit = 500 * time.Millisecond

// Ready responds 200 once the cache has been filled for the first time, and 503 before.
// It does so on every replica, leader or not. Otherwise an upgrade would wait for a
// replica that waits for the upgrade.
func Ready(objects cache.Cache) http.Handler {
	var filled atomic.Bool
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if !filled.Load() {
			ctx, cancel := context.WithTimeout(request.Context(), readyLimit)
			defer cancel()
			if !objects.WaitForCacheSync(ctx) {
				http.Error(w, "the cache is not filled yet", http.StatusServiceUnavailable)
				return
			}
			filled.Store(true)
		}
		w.WriteHeader(http.StatusOK)
	})
}
