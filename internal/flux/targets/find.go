// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
)

// Names of the field indexes that Find reads.
const (
	// RolloutIndex finds Repositories, Kustomizations and HelmReleases by the Rollouts that
	// their annotations name.
	RolloutIndex = ".metadata.annotations.rollout"
	// SourceIndex finds Kustomizations by the Repository that they consume, as its Ref.
	SourceIndex = ".spec.sourceRef"
	// ForeignSourceIndex finds Kustomizations in all namespaces by the Repository of another
	// namespace that they consume.
	ForeignSourceIndex = fieldindex.Everywhere + SourceIndex
)

// IndexGitRepositories adds RolloutIndex for GitRepositories. It is separate from Index because
// not every account may read GitRepositories.
func IndexGitRepositories(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &sourcev1.GitRepository{}, RolloutIndex, rolloutOfRepository); err != nil {
		return fmt.Errorf("index GitRepositories by Rollout: %w", err)
	}
	return nil
}

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
	if ref, ok := ConsumedBy(object); ok {
		return []string{ref.String()}
	}
	return artifactIn(object)
}

func foreignSourceOf(object client.Object) []string {
	if ref, ok := ConsumedElsewhere(object); ok {
		return []string{ref.String()}
	}
	return foreignArtifactIn(object)
}

// SourceOf returns the Repository that a Kustomization consumes, and whether it consumes
// one.
func SourceOf(k *kustomizev1.Kustomization) (Ref, bool) {
	ref := k.Spec.SourceRef
	return refOf(k, ref.Kind, ref.Namespace, ref.Name)
}

// Find returns the targets of a Rollout, sorted by kind and name: the objects in its
// namespace that name it, and the Kustomizations there that consume its repositories. The
// objects belong to the cache. Do not modify them. Without gitRepositories, none of these is
// read.
func Find(ctx context.Context, reader client.Reader, rollout types.NamespacedName, gitRepositories bool) ([]Target, error) {
	targets, err := findRepositories(ctx, reader, rollout, gitRepositories)
	if err != nil {
		return nil, err
	}
	kustomizations, err := findKustomizations(ctx, sources{reader: reader, git: gitRepositories}.with(targets), rollout)
	if err != nil {
		return nil, err
	}
	targets = append(targets, kustomizations...)
	return sorted(targets), nil
}

// findRepositories returns the Repositories whose tag belongs to the Rollout.
func findRepositories(ctx context.Context, reader client.Reader, rollout types.NamespacedName, gitRepositories bool) ([]Target, error) {
	options := []client.ListOption{client.InNamespace(rollout.Namespace), client.MatchingFields{RolloutIndex: rollout.Name}, client.UnsafeDisableDeepCopy}
	oci, git := &sourcev1.OCIRepositoryList{}, &sourcev1.GitRepositoryList{}
	if err := reader.List(ctx, oci, options...); err != nil {
		return nil, fmt.Errorf("list OCIRepositories: %w", err)
	}
	if gitRepositories {
		if err := reader.List(ctx, git, options...); err != nil {
			return nil, fmt.Errorf("list GitRepositories: %w", err)
		}
	}
	var targets []Target
	for i := range oci.Items {
		targets = append(targets, Target{Repository: &oci.Items[i], Digests: DigestsOf(&oci.Items[i], rollout.Name)})
	}
	for i := range git.Items {
		targets = append(targets, Target{Repository: &git.Items[i]})
	}
	return targets, nil
}

// sorted sorts targets by kind and name.
func sorted(targets []Target) []Target {
	slices.SortFunc(targets, func(a, b Target) int { return strings.Compare(a.String(), b.String()) })
	return targets
}

// findKustomizations returns the Kustomizations with a substitute of the Rollout and
// those that consume one of its repositories, each once.
func findKustomizations(ctx context.Context, sources sources, rollout types.NamespacedName) ([]Target, error) {
	queries := []client.MatchingFields{{RolloutIndex: rollout.Name}}
	for _, ref := range sources.own {
		queries = append(queries, client.MatchingFields{SourceIndex: ref.String()})
	}
	found := map[string]bool{}
	var targets []Target
	for _, query := range queries {
		list := &kustomizev1.KustomizationList{}
		if err := sources.reader.List(ctx, list, client.InNamespace(rollout.Namespace), query, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list Kustomizations: %w", err)
		}
		for i := range list.Items {
			k := &list.Items[i]
			if found[k.Name] {
				continue
			}
			found[k.Name] = true
			t := Target{Kustomization: k, Variables: VariablesOf(k, rollout.Name), Digests: DigestsOf(k, rollout.Name)}
			source, err := sources.of(ctx, t)
			if err != nil {
				return nil, err
			}
			t.Source = source
			targets = append(targets, t)
		}
	}
	return targets, nil
}

// consumes returns the Repository that the target consumes, and whether it consumes one.
func (t Target) consumes() (Ref, bool) {
	return ConsumedBy(t.Object())
}

// sources reads the Repositories that targets consume, each once.
type sources struct {
	reader client.Reader
	git    bool // reads GitRepositories, too
	own    []Ref
	known  map[Ref]Repository
}

// with returns sources that know the Repositories among targets.
func (s sources) with(targets []Target) sources {
	s.known = map[Ref]Repository{}
	for _, t := range targets {
		if t.Repository != nil {
			ref := RefTo(t.Repository)
			s.own, s.known[ref] = append(s.own, ref), t.Repository
		}
	}
	return s
}

// of returns the Repository that a target consumes. It returns nil if there is none.
func (s sources) of(ctx context.Context, t Target) (Repository, error) {
	ref, _ := t.consumes()
	return s.named(ctx, ref)
}

// named returns a Repository. It returns nil if there is none.
func (s sources) named(ctx context.Context, ref Ref) (Repository, error) {
	if !ref.isRepository() || ref.isGit() && !s.git {
		return nil, nil
	}
	if known, ok := s.known[ref]; ok {
		return known, nil
	}
	source, err := ref.Read(ctx, s.reader)
	if err == nil {
		s.known[ref] = source
	}
	return source, err
}
