// SPDX-License-Identifier: Apache-2.0

package controller

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/target"
)

// CacheOptions keeps only what the reconcilers read in the caches: of
// Kustomizations no inventory, and of their history only which build was
// applied last; of who owns the fields of targets only the controller's own
// part, and of other objects nothing. What was left out is read past the cache
// where it matters. Of Rollouts there are those that the selector matches; nil
// matches all.
func CacheOptions(rollouts labels.Selector) cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.Rollout{}:          {Label: rollouts},
			&kustomizev1.Kustomization{}: {Transform: trimTarget},
			&sourcev1.OCIRepository{}:    {Transform: trimTarget},
		},
	}
}

func trimTarget(o any) (any, error) {
	if k, ok := o.(*kustomizev1.Kustomization); ok {
		k.Status.Inventory = nil
		if len(k.Status.History) > 0 {
			k.Status.History = meta.History{{Digest: k.Status.History[0].Digest}}
		}
	}
	if object, ok := o.(client.Object); ok {
		target.KeepOwnFields(object)
	}
	return o, nil
}
