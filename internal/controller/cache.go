// SPDX-License-Identifier: Apache-2.0

package controller

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheOptions keeps only what the reconcilers read in the caches: of
// Kustomizations no inventory, and of their history only which build was
// applied last; of nothing who owns its fields. What was left out is read past
// the cache where it matters.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&kustomizev1.Kustomization{}: {Transform: trimKustomization(cache.TransformStripManagedFields())},
		},
	}
}

func trimKustomization(next toolscache.TransformFunc) toolscache.TransformFunc {
	return func(o any) (any, error) {
		if k, ok := o.(*kustomizev1.Kustomization); ok {
			k.Status.Inventory = nil
			if len(k.Status.History) > 0 {
				k.Status.History = meta.History{{Digest: k.Status.History[0].Digest}}
			}
		}
		return next(o)
	}
}
