// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
)

// Names of the field indexes that Find reads.
const (
	// RolloutIndex finds OCIRepositories, Kustomizations and HelmReleases by the Rollouts
	// that their annotations name.
	RolloutIndex = ".metadata.annotations.rollout"
	// SourceIndex finds Kustomizations by the OCIRepository that they consume, as
	// "namespace/name".
	SourceIndex = ".spec.sourceRef.ociRepository"
	// ForeignSourceIndex finds Kustomizations in all namespaces by the OCIRepository of
	// another namespace that they consume, as "namespace/name".
	ForeignSourceIndex = fieldindex.Everywhere + SourceIndex
)

// Index adds the field indexes.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &sourcev1.OCIRepository{}, RolloutIndex, rolloutOfRepository); err != nil {
		return fmt.Errorf("index OCIRepositories by Rollout: %w", err)
	}
	if err := indexer.IndexField(ctx, &kustomizev1.Kustomization{}, RolloutIndex, RolloutsOf); err != nil {
		return fmt.Errorf("index Kustomizations by Rollout: %w", err)
	}
	if err := indexer.IndexField(ctx, &kustomizev1.Kustomization{}, SourceIndex, sourceOf); err != nil {
		return fmt.Errorf("index Kustomizations by source: %w", err)
	}
	if err := indexer.IndexField(ctx, &kustomizev1.Kustomization{}, ForeignSourceIndex, foreignSourceOf); err != nil {
		return fmt.Errorf("index Kustomizations by a source of another namespace: %w", err)
	}
	return nil
}

func rolloutOfRepository(repository client.Object) []string {
	if name := RolloutOf(repository); name != "" {
		return []string{name}
	}
	return nil
}

func sourceOf(object client.Object) []string {
	if key, ok := SourceOf(object.(*kustomizev1.Kustomization)); ok {
		return []string{key.String()}
	}
	return nil
}

func foreignSourceOf(object client.Object) []string {
	if source := (Target{Kustomization: object.(*kustomizev1.Kustomization)}).ForeignSource(); source != "" {
		return []string{source}
	}
	return nil
}

// SourceOf returns the OCIRepository that a Kustomization consumes, and whether it
// consumes one.
func SourceOf(k *kustomizev1.Kustomization) (types.NamespacedName, bool) {
	ref := k.Spec.SourceRef
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	if key.Namespace == "" {
		key.Namespace = k.Namespace
	}
	return key, ref.Kind == sourcev1.OCIRepositoryKind
}

// Find returns the targets of a Rollout, sorted by kind and name: the objects in its
// namespace that name it, and the Kustomizations there that consume its repositories. The
// objects belong to the cache. Do not modify them.
func Find(ctx context.Context, reader client.Reader, rollout types.NamespacedName) ([]Target, error) {
	repositories := &sourcev1.OCIRepositoryList{}
	if err := reader.List(ctx, repositories, client.InNamespace(rollout.Namespace),
		client.MatchingFields{RolloutIndex: rollout.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list OCIRepositories: %w", err)
	}
	var targets []Target
	for i := range repositories.Items {
		targets = append(targets, Target{Repository: &repositories.Items[i], Digests: DigestsOf(&repositories.Items[i], rollout.Name)})
	}
	kustomizations, err := findKustomizations(ctx, reader, rollout, repositories.Items)
	if err != nil {
		return nil, err
	}
	targets = append(targets, kustomizations...)
	return sorted(targets), nil
}

// sorted sorts targets by kind and name.
func sorted(targets []Target) []Target {
	slices.SortFunc(targets, func(a, b Target) int { return strings.Compare(a.String(), b.String()) })
	return targets
}

// findKustomizations returns the Kustomizations with a substitute of the Rollout and
// those that consume one of its repositories, each once.
func findKustomizations(ctx context.Context, reader client.Reader, rollout types.NamespacedName,
	repositories []sourcev1.OCIRepository) ([]Target, error) {
	queries := []client.MatchingFields{{RolloutIndex: rollout.Name}}
	for i := range repositories {
		queries = append(queries, client.MatchingFields{SourceIndex: client.ObjectKeyFromObject(&repositories[i]).String()})
	}
	found := map[string]bool{}
	var targets []Target
	for _, query := range queries {
		list := &kustomizev1.KustomizationList{}
		if err := reader.List(ctx, list, client.InNamespace(rollout.Namespace), query, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list Kustomizations: %w", err)
		}
		for i := range list.Items {
			k := &list.Items[i]
			if found[k.Name] {
				continue
			}
			found[k.Name] = true
			t := Target{Kustomization: k, Variables: VariablesOf(k, rollout.Name), Digests: DigestsOf(k, rollout.Name)}
			source, err := t.readSource(ctx, reader)
			if err != nil {
				return nil, err
			}
			t.Source = source
			targets = append(targets, t)
		}
	}
	return targets, nil
}

// consumes returns the OCIRepository that the target consumes, and whether it consumes
// one.
func (t Target) consumes() (types.NamespacedName, bool) {
	return ConsumedBy(t.Object())
}

// readSource returns the OCIRepository that the target consumes. It returns nil if there
// is none or it does not exist.
func (t Target) readSource(ctx context.Context, reader client.Reader) (*sourcev1.OCIRepository, error) {
	key, ok := t.consumes()
	if !ok {
		return nil, nil
	}
	source := &sourcev1.OCIRepository{}
	err := reader.Get(ctx, key, source, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get OCIRepository %s: %w", key, err)
	}
	return source, nil
}
