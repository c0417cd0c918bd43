// SPDX-License-Identifier: Apache-2.0

package controller

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheOptions keeps only what the reconcilers read in the caches: of
// Kustomizations neither the inventory nor the history, and of nothing who
// owns its fields. Both are read past the cache where they matter.
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
			k.Status.Inventory, k.Status.History = nil, nil
		}
		return next(o)
	}
}
