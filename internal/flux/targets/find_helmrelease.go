// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
)

const (
	// ChartIndex is the field index with which WithHelmReleases finds HelmReleases by the
	// OCIRepository of their chart, as "namespace/name".
	ChartIndex = ".spec.chartRef.ociRepository"
	// ForeignChartIndex finds HelmReleases in all namespaces by the OCIRepository of
	// another namespace that has their chart, as "namespace/name".
	ForeignChartIndex = fieldindex.Everywhere + ChartIndex
)

// IndexHelmReleases adds these indexes, and RolloutIndex for HelmReleases. It is separate
// from Index because not every cluster serves HelmReleases.
func IndexHelmReleases(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &helmv2.HelmRelease{}, RolloutIndex, RolloutsOf); err != nil {
		return fmt.Errorf("index HelmReleases by Rollout: %w", err)
	}
	if err := indexer.IndexField(ctx, &helmv2.HelmRelease{}, ChartIndex, chartOf); err != nil {
		return fmt.Errorf("index HelmReleases by the source of their chart: %w", err)
	}
	if err := indexer.IndexField(ctx, &helmv2.HelmRelease{}, ForeignChartIndex, foreignChartOf); err != nil {
		return fmt.Errorf("index HelmReleases by a source of another namespace: %w", err)
	}
	return nil
}

func chartOf(object client.Object) []string {
	if key, ok := ChartOf(object.(*helmv2.HelmRelease)); ok {
		return []string{key.String()}
	}
	return nil
}

func foreignChartOf(object client.Object) []string {
	if source := (Target{HelmRelease: object.(*helmv2.HelmRelease)}).ForeignSource(); source != "" {
		return []string{source}
	}
	return nil
}

// ChartOf returns the OCIRepository of a HelmRelease's chart, and whether it has one. If
// there is a template of the chart, it is the OCIRepository that Flux has made of it.
func ChartOf(h *helmv2.HelmRelease) (types.NamespacedName, bool) {
	ref := h.Spec.ChartRef
	if ref == nil {
		return generatedChart(h.Status.HelmChart)
	}
	if ref.Kind != sourcev1.OCIRepositoryKind {
		return types.NamespacedName{}, false
	}
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	if key.Namespace == "" {
		key.Namespace = h.Namespace
	}
	return key, true
}

// generatedChart reads a reference to an OCIRepository that Flux has made of the template
// of a chart. A reference to a HelmChart has no kind.
func generatedChart(reference string) (types.NamespacedName, bool) {
	parts := strings.Split(reference, "/")
	if len(parts) != 3 || parts[0] != sourcev1.OCIRepositoryKind {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: parts[1], Name: parts[2]}, true
}

// WithHelmReleases adds HelmReleases in the namespace of the Rollout to its targets, in
// the order of Find: those with a value of the Rollout, and those whose chart comes from
// one of its repositories, each once. The objects belong to the cache. Do not modify them.
func WithHelmReleases(ctx context.Context, reader client.Reader, rollout types.NamespacedName, targets []Target) ([]Target, error) {
	all, queries := targets, []client.MatchingFields{{RolloutIndex: rollout.Name}}
	sources := sources{reader: reader, known: map[types.NamespacedName]*sourcev1.OCIRepository{}}
	for _, t := range targets {
		if t.Repository != nil {
			key := client.ObjectKeyFromObject(t.Repository)
			sources.known[key] = t.Repository
			queries = append(queries, client.MatchingFields{ChartIndex: key.String()})
		}
	}
	found := map[string]bool{}
	for _, query := range queries {
		list := &helmv2.HelmReleaseList{}
		if err := reader.List(ctx, list, client.InNamespace(rollout.Namespace), query, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list HelmReleases: %w", err)
		}
		for i := range list.Items {
			h := &list.Items[i]
			if found[h.Name] {
				continue
			}
			found[h.Name] = true
			t := Target{HelmRelease: h, Paths: PathsOf(h, rollout.Name), Digests: DigestsOf(h, rollout.Name)}
			source, err := sources.of(ctx, t)
			if err != nil {
				return nil, err
			}
			t.Source = source
			all = append(all, t)
		}
	}
	return sorted(all), nil
}

// sources remembers the OCIRepositories that were read.
type sources struct {
	reader client.Reader
	known  map[types.NamespacedName]*sourcev1.OCIRepository
}

func (s sources) of(ctx context.Context, t Target) (*sourcev1.OCIRepository, error) {
	key, ok := t.consumes()
	if known := s.known[key]; ok && known != nil {
		return known, nil
	}
	source, err := t.readSource(ctx, s.reader)
	if ok && err == nil {
		s.known[key] = source
	}
	return source, err
}
