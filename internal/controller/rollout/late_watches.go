// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// lateWatches are the watches of kinds that not every cluster serves. Where one is not
// served, reading it costs requests and causes errors.
type lateWatches struct {
	cache cache.Cache
	add   func(source.Source) error

	// Each is true once its kind is watched.
	helmReleases, gitRepositories, artifacts, environments, quarantines, approvals atomic.Bool
}

// watch wakes the Rollouts that an object of the kind concerns.
func (l *lateWatches) watch(kind client.Object, rollouts handler.MapFunc, when ...predicate.Predicate) error {
	return l.add(source.Kind(l.cache, kind, handler.EnqueueRequestsFromMapFunc(rollouts), when...))
}
