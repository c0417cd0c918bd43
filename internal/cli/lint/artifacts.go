// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// externalArtifact is the kind of what an ArtifactGenerator makes.
const externalArtifact = "ExternalArtifact"

// mostArtifactsInRow is how many artifacts, each made of the one before, a Rollout follows.
const mostArtifactsInRow = 3

// artifact is an output of an ArtifactGenerator.
type artifact struct {
	generator *object
	path      []string
	name      string
	revision  string   // the alias whose revision it has
	copies    []string // the aliases whose files it has
	// released are those of them by which it has the files of a repository of a Rollout.
	released []string
}

func (a artifact) reference() reference {
	return reference{externalArtifact, a.generator.namespace(), a.name}
}

// isPatterned reports whether a generator makes an artifact for each folder, whose names files
// do not show.
func isPatterned(generator *object) bool { return generator.text("spec", "pathPattern") != "" }

// artifactsOf returns the outputs of a generator. One that makes an artifact for each folder has
// each of them under all names that its status has.
func artifactsOf(generator *object) []artifact {
	var all []artifact
	for i := range generator.items("spec", "artifacts") {
		path := []string{"spec", "artifacts", strconv.Itoa(i)}
		a := artifact{generator: generator, path: path, name: generator.text(child(path, "name")...)}
		a.revision = strings.TrimPrefix(generator.text(child(path, "revision")...), "@")
		for n := range generator.items(child(path, "copy")...) {
			alias, _, _ := strings.Cut(strings.TrimPrefix(generator.text(append(child(path, "copy"), strconv.Itoa(n), "from")...), "@"), "/")
			a.copies = append(a.copies, alias)
		}
		if !isPatterned(generator) {
			all = append(all, a)
			continue
		}
		for n := range generator.items("status", "inventory") {
			a.name = generator.text("status", "inventory", strconv.Itoa(n), "name")
			all = append(all, a)
		}
	}
	return all
}

// takes reports whether an alias of the generator is a source.
func (a artifact) takes(alias string, source reference) bool {
	for i := range a.generator.items("spec", "sources") {
		path := []string{"spec", "sources", strconv.Itoa(i)}
		namespace := cmp.Or(a.generator.text(child(path, "namespace")...), a.generator.namespace())
		if a.generator.text(child(path, "alias")...) == alias && a.generator.text(child(path, "kind")...) == source.kind &&
			a.generator.text(child(path, "name")...) == source.name && sameNamespace(namespace, source.namespace) != no {
			return true
		}
	}
	return false
}

// madeOf returns the artifacts that have files of a repository, themselves or by others.
func (s *set) madeOf(repository *object) []artifact {
	var all []artifact
	sources := []reference{{repository.kind(), repository.namespace(), repository.name()}}
	for row := 0; row < mostArtifactsInRow && len(sources) > 0; row++ {
		made := s.madeOfAny(sources)
		all, sources = append(all, made...), nil
		for _, a := range made {
			sources = append(sources, a.reference())
		}
	}
	return all
}

func (s *set) madeOfAny(sources []reference) []artifact {
	var all []artifact
	for _, generator := range s.byKind[generatorKind] {
		for _, a := range artifactsOf(generator) {
			a.released = slices.DeleteFunc(slices.Clone(a.copies), func(alias string) bool {
				return !slices.ContainsFunc(sources, func(source reference) bool { return a.takes(alias, source) })
			})
			if len(a.released) > 0 {
				all = append(all, a)
			}
		}
	}
	return all
}

// takersOf returns what takes an artifact that has files of a repository, each once.
func (s *set) takersOf(repository *object) []*object {
	var all []*object
	for _, a := range s.madeOf(repository) {
		for _, o := range s.consumersOf[a.name] {
			from, _ := o.source()
			if from.kind == externalArtifact && sameNamespace(from.namespace, a.generator.namespace()) != no && !slices.Contains(all, o) {
				all = append(all, o)
			}
		}
	}
	return all
}

// mayBeTaken reports whether files of a repository are in artifacts whose names are not known.
func (s *set) mayBeTaken(repository *object) bool {
	source := reference{repository.kind(), repository.namespace(), repository.name()}
	return slices.ContainsFunc(s.byKind[generatorKind], func(generator *object) bool {
		return isPatterned(generator) && !generator.has("status", "inventory") && artifact{generator: generator}.takesAnywhere(source)
	})
}

func (a artifact) takesAnywhere(source reference) bool {
	return slices.ContainsFunc(a.generator.items("spec", "sources"), func(each any) bool {
		from, _ := each.(map[string]any)
		alias, _ := from["alias"].(string)
		return a.takes(alias, source)
	})
}

// repositoriesIn returns the repositories whose files an object takes by an artifact.
func (s *set) repositoriesIn(target *object) []*object {
	if from, ok := target.source(); !ok || from.kind != externalArtifact {
		return nil
	}
	var all []*object
	for _, kind := range []schema.GroupKind{repositoryKind, gitRepositoryKind} {
		for _, repository := range s.byKind[kind] {
			if len(rolloutsOf(repository)) > 0 && slices.Contains(s.takersOf(repository), target) {
				all = append(all, repository)
			}
		}
	}
	return all
}

// checkArtifactRevisions finds artifacts whose revision does not show a release.
func checkArtifactRevisions(r *report) {
	r.eachWritten(func(rollout, repository *object) {
		for _, a := range r.madeOf(repository) {
			other := slices.DeleteFunc(slices.Clone(a.released), func(alias string) bool { return alias == a.revision })
			if a.revision == "" || len(other) == 0 || a.generator.isUnknown(child(a.path, "revision")...) {
				continue
			}
			remedy := "remove its revision"
			if len(a.released) == 1 {
				remedy += ", or set it to @" + other[0]
			}
			r.find(at{a.generator, child(a.path, "revision")}, fmt.Sprintf("artifact %s takes its revision from @%s, so neither Flux nor %s sees a new release of %s in it",
				a.name, a.revision, rollout, repository), remedy)
		}
	})
}

// checkSourcesOfArtifacts finds artifacts whose revision shows a release, and no change of
// what else they are made of.
func checkSourcesOfArtifacts(r *report) {
	r.eachWritten(func(_, repository *object) {
		for _, a := range r.madeOf(repository) {
			other := slices.IndexFunc(a.copies, func(alias string) bool { return alias != a.revision })
			if !slices.Contains(a.released, a.revision) || other < 0 || slices.Contains(a.released, a.copies[other]) {
				continue
			}
			r.find(at{a.generator, child(a.path, "revision")}, fmt.Sprintf("artifact %s takes its revision from @%s, so Flux applies a change of @%s only at the interval of what takes the artifact",
				a.name, a.revision, a.copies[other]), "remove its revision")
		}
	})
}
