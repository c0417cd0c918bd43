// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// UnseenTarget returns an object of a namespace that may be a target and that the caches
// do not show yet, as "Kind namespace/name". It is empty if they show all. Each kind has a
// watch of its own, so the caches may show a Rollout before a target that was created
// earlier. It reads only metadata past the caches.
func (g Gatherer) UnseenTarget(ctx context.Context, namespace string) (string, error) {
	kinds := map[schema.GroupVersionKind]client.ObjectList{
		sourcev1.GroupVersion.WithKind(sourcev1.OCIRepositoryKind):       &sourcev1.OCIRepositoryList{},
		kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind): &kustomizev1.KustomizationList{},
	}
	if g.HelmReleases {
		kinds[helmv2.GroupVersion.WithKind(helmv2.HelmReleaseKind)] = &helmv2.HelmReleaseList{}
	}
	if g.GitRepositories {
		kinds[sourcev1.GroupVersion.WithKind(sourcev1.GitRepositoryKind)] = &sourcev1.GitRepositoryList{}
	}
	if g.Artifacts {
		kinds[sourcev1.GroupVersion.WithKind(sourcev1.ExternalArtifactKind)] = &sourcev1.ExternalArtifactList{}
		kinds[generatorv1.GroupVersion.WithKind(generatorv1.ArtifactGeneratorKind)] = &generatorv1.ArtifactGeneratorList{}
	}
	for kind, list := range kinds {
		seen, err := g.cached(ctx, namespace, list)
		if err != nil {
			return "", err
		}
		unseen, err := g.unseen(ctx, namespace, kind, seen)
		if err != nil || unseen != "" {
			return unseen, err
		}
	}
	return "", nil
}

// cached returns the objects of a kind that the cache shows.
func (g Gatherer) cached(ctx context.Context, namespace string, list client.ObjectList) (map[types.UID]bool, error) {
	if err := g.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy, unreadable.Left{}); err != nil {
		return nil, fmt.Errorf("list the cached objects of namespace %s: %w", namespace, err)
	}
	seen := map[types.UID]bool{}
	err := apimeta.EachListItem(list, func(o runtime.Object) error {
		seen[o.(client.Object).GetUID()] = true
		return nil
	})
	return seen, err
}

// unseen returns an object of a kind that exists and was not seen.
func (g Gatherer) unseen(ctx context.Context, namespace string, kind schema.GroupVersionKind, seen map[types.UID]bool) (string, error) {
	const page = 20 // the metadata of an object can have half a megabyte
	of := kind.GroupVersion().WithKind(kind.Kind + "List")
	for next := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(of)
		err := g.Live.List(ctx, list, client.InNamespace(namespace), client.Limit(page), client.Continue(next))
		if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return "", nil // the kind is no longer served, and so nothing of it exists
		} else if err != nil {
			return "", fmt.Errorf("look for a new %s in namespace %s: %w", kind.Kind, namespace, err)
		}
		for i := range list.Items {
			if o := &list.Items[i]; !seen[o.UID] {
				return fmt.Sprintf("%s %s/%s", kind.Kind, o.Namespace, o.Name), nil
			}
		}
		if next = list.Continue; next == "" {
			return "", nil
		}
	}
}
