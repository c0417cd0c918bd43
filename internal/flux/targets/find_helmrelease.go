// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ChartIndex is the field index with which WithHelmReleases finds HelmReleases by the
// OCIRepository of their chart, as "namespace/name".
const ChartIndex = ".spec.chartRef.ociRepository"

// IndexHelmReleases adds that index. It is separate from Index because not every cluster
// serves HelmReleases.
func IndexHelmReleases(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &helmv2.HelmRelease{}, ChartIndex, chartOf); err != nil {
		return fmt.Errorf("index HelmReleases by the source of their chart: %w", err)
	}
	return nil
}

func chartOf(object client.Object) []string {
	if key, ok := ChartOf(object.(*helmv2.HelmRelease)); ok {
		return []string{key.String()}
	}
	return nil
}

// ChartOf returns the OCIRepository of a HelmRelease's chart, and whether it has one.
func ChartOf(h *helmv2.HelmRelease) (types.NamespacedName, bool) {
	ref := h.Spec.ChartRef
	if ref == nil || ref.Kind != sourcev1.OCIRepositoryKind {
		return types.NamespacedName{}, false
	}
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	if key.Namespace == "" {
		key.Namespace = h.Namespace
	}
	return key, true
}

// WithHelmReleases adds the HelmReleases whose chart comes from one of the Rollout's
// repositories to its targets, in the order of Find. Like Kustomizations, they must be in
// the namespace of the Rollout. The objects belong to the cache. Do not modify them.
func WithHelmReleases(ctx context.Context, reader client.Reader, targets []Target) ([]Target, error) {
	all := targets
	for _, t := range targets {
		if t.Repository == nil {
			continue
		}
		list := &helmv2.HelmReleaseList{}
		if err := reader.List(ctx, list, client.InNamespace(t.Repository.Namespace),
			client.MatchingFields{ChartIndex: client.ObjectKeyFromObject(t.Repository).String()}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list HelmReleases: %w", err)
		}
		for i := range list.Items {
			all = append(all, Target{HelmRelease: &list.Items[i], Source: t.Repository})
		}
	}
	return sorted(all), nil
}
