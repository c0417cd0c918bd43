// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// GeneratorIndex finds ArtifactGenerators in all namespaces by a Repository or
// ExternalArtifact that they take, as its Ref.
const GeneratorIndex = fieldindex.Everywhere + ".spec.sources"

// IndexArtifacts adds it. It is separate from Index because not every cluster serves
// ArtifactGenerators.
func IndexArtifacts(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &generatorv1.ArtifactGenerator{}, GeneratorIndex, sourcesOf); err != nil {
		return fmt.Errorf("index ArtifactGenerators by source: %w", err)
	}
	return nil
}

func sourcesOf(object client.Object) []string {
	var all []string
	for _, s := range object.(*generatorv1.ArtifactGenerator).Spec.Sources {
		if LeadsOn(s.Kind) {
			all = append(all, SourceOfGenerator(object, s).String())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// LeadsOn reports whether an ArtifactGenerator may get a release by a source of the kind.
func LeadsOn(kind string) bool {
	return kind == sourcev1.OCIRepositoryKind || kind == sourcev1.GitRepositoryKind || kind == sourcev1.ExternalArtifactKind
}

func artifactRef(key client.ObjectKey) Ref {
	return Ref{Kind: sourcev1.ExternalArtifactKind, NamespacedName: key}
}

// SourceOfGenerator returns the name of a source of an ArtifactGenerator.
func SourceOfGenerator(generator client.Object, source generatorv1.SourceReference) Ref {
	ref, _ := refOf(generator, source.Kind, source.Namespace, source.Name)
	return ref
}

// WithArtifacts adds to the targets of a Rollout, in the order of Find, what takes an
// ExternalArtifact that is made of its Repositories, and to those that do what shows
// whether it has the release. The objects belong to the cache. Do not modify them.
func WithArtifacts(ctx context.Context, reader client.Reader, rollout types.NamespacedName, targets []Target, helmReleases, gitRepositories bool) ([]Target, error) {
	artifacts, err := artifactsOf(ctx, sources{reader: reader, git: gitRepositories}.with(targets))
	if err != nil || len(artifacts) == 0 {
		return targets, err
	}
	all, found := slices.Clone(targets), map[string]bool{}
	for i := range all {
		all[i].Artifact = artifacts.takenBy(all[i])
		all[i].Artifacts = artifacts.madeOf(all[i].Repository)
		found[all[i].String()] = true
	}
	for _, a := range artifacts.sorted() {
		consumers, err := consumersOf(ctx, reader, a.Name, rollout.Namespace, helmReleases)
		if err != nil {
			return nil, err
		}
		for _, t := range consumers {
			if !found[t.String()] {
				t.Artifact = a
				all = append(all, t)
			}
		}
	}
	return sorted(all), nil
}

// consumersOf returns what takes an ExternalArtifact, in a namespace. None of it has a field of
// the Rollout, or it was found by that.
func consumersOf(ctx context.Context, reader client.Reader, artifact client.ObjectKey, namespace string, helmReleases bool) ([]Target, error) {
	return takersOf(ctx, reader, artifactRef(artifact).String(), SourceIndex, ChartIndex, helmReleases, client.InNamespace(namespace))
}

func takersOf(ctx context.Context, reader client.Reader, artifact, sourceIndex, chartIndex string, helmReleases bool, where ...client.ListOption) ([]Target, error) {
	kustomizations, charts := &kustomizev1.KustomizationList{}, &helmv2.HelmReleaseList{}
	options := append(where, client.UnsafeDisableDeepCopy, unreadable.Left{})
	if err := reader.List(ctx, kustomizations, append(options, client.MatchingFields{sourceIndex: artifact})...); err != nil {
		return nil, fmt.Errorf("list Kustomizations of an ExternalArtifact: %w", err)
	}
	if helmReleases {
		if err := reader.List(ctx, charts, append(options, client.MatchingFields{chartIndex: artifact})...); err != nil {
			return nil, fmt.Errorf("list HelmReleases of an ExternalArtifact: %w", err)
		}
	}
	return targetsOf(kustomizations, charts), nil
}

func targetsOf(kustomizations *kustomizev1.KustomizationList, charts *helmv2.HelmReleaseList) []Target {
	var all []Target
	for i := range kustomizations.Items {
		all = append(all, Target{Kustomization: &kustomizations.Items[i]})
	}
	for i := range charts.Items {
		all = append(all, Target{HelmRelease: &charts.Items[i]})
	}
	return all
}

// artifacts are those that are made of the Repositories of a Rollout, by name.
type artifacts map[client.ObjectKey]*Artifact

func (all artifacts) takenBy(t Target) *Artifact {
	key, takes := ArtifactOf(t.Object())
	if !takes {
		return nil
	}
	return all[key]
}

func (all artifacts) madeOf(r Repository) []*Artifact {
	if r == nil {
		return nil
	}
	return slices.DeleteFunc(all.sorted(), func(a *Artifact) bool { return !a.isMadeOf(RefTo(r)) })
}

func (all artifacts) sorted() []*Artifact {
	var sorted []*Artifact
	for _, a := range all {
		sorted = append(sorted, a)
	}
	slices.SortFunc(sorted, func(a, b *Artifact) int { return strings.Compare(a.Name.String(), b.Name.String()) })
	return sorted
}

// artifactsOf follows ArtifactGenerators from the Repositories of a Rollout.
func artifactsOf(ctx context.Context, sources sources) (artifacts, error) {
	var names []string
	for _, ref := range sources.own {
		names = append(names, ref.String())
	}
	all := artifacts{}
	for row := 0; row < MostArtifactsInRow && len(names) > 0; row++ {
		next, err := all.addMadeOf(ctx, sources.reader, names)
		if err != nil {
			return nil, err
		}
		names = next
	}
	for _, a := range all {
		if err := all.mix(ctx, sources, a); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// addMadeOf adds the artifacts that are made of sources, and returns their names.
func (all artifacts) addMadeOf(ctx context.Context, reader client.Reader, sources []string) (added []string, err error) {
	for _, source := range sources {
		list := &generatorv1.ArtifactGeneratorList{}
		if err := reader.List(ctx, list, client.MatchingFields{GeneratorIndex: source}, client.UnsafeDisableDeepCopy, unreadable.Left{}); err != nil {
			return nil, fmt.Errorf("list ArtifactGenerators: %w", err)
		}
		for i := range list.Items {
			names, err := all.addOf(ctx, reader, &list.Items[i], source)
			if err != nil {
				return nil, err
			}
			added = append(added, names...)
		}
	}
	return added, nil
}

// addOf adds the artifacts of a generator that have files of a source.
func (all artifacts) addOf(ctx context.Context, reader client.Reader, g *generatorv1.ArtifactGenerator, source string) (added []string, err error) {
	for _, name := range namesOfOutputs(g) {
		key := client.ObjectKey{Namespace: g.Namespace, Name: name}
		if all[key] != nil || !copiesSource(g, name, source) {
			continue
		}
		a := &Artifact{Name: key, Generator: g}
		if belongs, err := a.read(ctx, reader); err != nil {
			return nil, err
		} else if belongs {
			all[key], added = a, append(added, artifactRef(key).String())
		}
	}
	return added, nil
}

// namesOfOutputs returns the names of the artifacts that a generator makes. With a pattern of
// paths, they are only known once it has made them.
func namesOfOutputs(g *generatorv1.ArtifactGenerator) []string {
	var names []string
	if g.Spec.PathPattern != "" {
		for _, made := range g.Status.Inventory {
			names = append(names, made.Name)
		}
		return names
	}
	for _, output := range g.Spec.OutputArtifacts {
		names = append(names, output.Name)
	}
	return names
}

func copiesSource(g *generatorv1.ArtifactGenerator, name, source string) bool {
	outputs := outputsOf(g, name)
	return slices.ContainsFunc(g.Spec.Sources, func(s generatorv1.SourceReference) bool {
		return SourceOfGenerator(g, s).String() == source && copyFrom(outputs, s.Alias)
	})
}

// read reads the ExternalArtifact, and reports whether it can be the one of the generator.
func (a *Artifact) read(ctx context.Context, reader client.Reader) (belongs bool, err error) {
	made := &sourcev1.ExternalArtifact{}
	err = reader.Get(ctx, a.Name, made, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		a.Object = nil
		return true, nil
	case err != nil:
		return false, fmt.Errorf("get ExternalArtifact %s: %w", a.Name, err)
	}
	a.Object = made
	generator, named := GeneratorOf(made)
	return named && generator == client.ObjectKeyFromObject(a.Generator), nil
}

// mix sets what an artifact is made of, as far as it leads to Rollouts.
func (all artifacts) mix(ctx context.Context, sources sources, a *Artifact) error {
	outputs := a.outputs()
	for _, s := range a.Generator.Spec.Sources {
		ref := SourceOfGenerator(a.Generator, s)
		if !copyFrom(outputs, s.Alias) {
			continue
		}
		if artifact := all[ref.NamespacedName]; ref.Kind == sourcev1.ExternalArtifactKind && artifact != nil {
			a.parts = append(a.parts, ingredient{alias: s.Alias, artifact: artifact})
			continue
		}
		repository, err := sources.named(ctx, ref)
		if err != nil {
			return err
		}
		a.add(s.Alias, repository, slices.Contains(sources.own, ref))
	}
	return nil
}

// add adds a Repository of which the artifact has files, or the Rollout that writes one of
// another Rollout.
func (a *Artifact) add(alias string, repository Repository, own bool) {
	switch {
	case own:
		a.parts = append(a.parts, ingredient{alias: alias, repository: repository})
	case repository != nil && RolloutOf(repository) != "":
		a.rollouts = append(a.rollouts, types.NamespacedName{Namespace: repository.GetNamespace(), Name: RolloutOf(repository)})
	}
}

// elsewhereByArtifacts returns the names of what takes ExternalArtifacts that are made of the
// Repository of a target, in other namespaces than its own.
func elsewhereByArtifacts(ctx context.Context, reader client.Reader, t Target, helmReleases bool) ([]string, error) {
	var found []Target
	for _, a := range t.Artifacts {
		consumers, err := takersOf(ctx, reader, artifactRef(a.Name).String(), ForeignSourceIndex, ForeignChartIndex, helmReleases)
		if err == nil && a.Name.Namespace != t.Repository.GetNamespace() {
			var near []Target
			near, err = consumersOf(ctx, reader, a.Name, a.Name.Namespace, helmReleases)
			consumers = append(consumers, near...)
		}
		if err != nil {
			return nil, err
		}
		found = append(found, consumers...)
	}
	return namesOf(slices.DeleteFunc(found, func(other Target) bool {
		return other.isDeleting() || other.Object().GetNamespace() == t.Repository.GetNamespace()
	})), nil
}
