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
	// Repository of their chart, as its Ref.
	ChartIndex = ".spec.chartRef"
	// ForeignChartIndex finds HelmReleases in all namespaces by the Repository of another
	// namespace that has their chart.
	ForeignChartIndex = fieldindex.Everywhere + ChartIndex
)

// IndexHelmReleases adds these indexes, and RolloutIndex for HelmReleases. It is separate
// from Index because not every cluster serves HelmReleases.
func IndexHelmReleases(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &helmv2.HelmRelease{}, RolloutIndex, RolloutsOf); err != nil {
		return fmt.Errorf("index HelmReleases by Rollout: %w", err)
	}
	if err := indexer.IndexField(ctx, &helmv2.HelmRelease{}, ChartIndex, sourceOf); err != nil {
		return fmt.Errorf("index HelmReleases by the source of their chart: %w", err)
	}
	if err := indexer.IndexField(ctx, &helmv2.HelmRelease{}, ForeignChartIndex, foreignSourceOf); err != nil {
		return fmt.Errorf("index HelmReleases by a source of another namespace: %w", err)
	}
	return nil
}

// ChartOf returns the Repository of a HelmRelease's chart, and whether it has one. If there
// is a template of the chart, it is the GitRepository that the template names, or the
// OCIRepository that Flux has made of it.
func ChartOf(h *helmv2.HelmRelease) (Ref, bool) {
	if ref := h.Spec.ChartRef; ref != nil {
		found, ok := refOf(h, ref.Kind, ref.Namespace, ref.Name)
		return found, ok && !found.isGit()
	}
	if ref := gitChartOf(h); ref != nil {
		return refOf(h, ref.Kind, ref.Namespace, ref.Name)
	}
	return generatedChart(h.Status.HelmChart)
}

// gitChartOf returns the GitRepository in the template of a HelmRelease's chart; nil if there
// is none.
func gitChartOf(h *helmv2.HelmRelease) *helmv2.CrossNamespaceObjectReference {
	if h.Spec.Chart == nil || h.Spec.Chart.Spec.SourceRef.Kind != sourcev1.GitRepositoryKind {
		return nil
	}
	return &h.Spec.Chart.Spec.SourceRef
}

// GitChart returns the template of a HelmRelease's chart with nothing but the GitRepository
// that has the chart, and when Flux packages it again; nil if there is none.
func GitChart(h *helmv2.HelmRelease) *helmv2.HelmChartTemplate {
	source := gitChartOf(h)
	if source == nil {
		return nil
	}
	return &helmv2.HelmChartTemplate{Spec: helmv2.HelmChartTemplateSpec{SourceRef: *source, ReconcileStrategy: h.Spec.Chart.Spec.ReconcileStrategy}}
}

// generatedChart reads a reference to an OCIRepository that Flux has made of the template
// of a chart. A reference to a HelmChart has no kind.
func generatedChart(reference string) (Ref, bool) {
	parts := strings.Split(reference, "/")
	if len(parts) != 3 || parts[0] != sourcev1.OCIRepositoryKind {
		return Ref{}, false
	}
	return Ref{Kind: parts[0], NamespacedName: types.NamespacedName{Namespace: parts[1], Name: parts[2]}}, true
}

// WithHelmReleases adds HelmReleases in the namespace of the Rollout to its targets, in
// the order of Find: those with a value of the Rollout, and those whose chart comes from
// one of its repositories, each once. The objects belong to the cache. Do not modify them.
func WithHelmReleases(ctx context.Context, reader client.Reader, rollout types.NamespacedName, targets []Target, gitRepositories bool) ([]Target, error) {
	all, queries := targets, []client.MatchingFields{{RolloutIndex: rollout.Name}}
	sources := sources{reader: reader, git: gitRepositories}.with(targets)
	for _, ref := range sources.own {
		queries = append(queries, client.MatchingFields{ChartIndex: ref.String()})
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
