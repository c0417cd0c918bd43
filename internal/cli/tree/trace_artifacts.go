// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
)

var (
	artifactKind  = sourcev1.GroupVersion.WithKind(sourcev1.ExternalArtifactKind)
	generatorKind = generatorv1.GroupVersion.WithKind(generatorv1.ArtifactGeneratorKind)
)

func refTo(kind schema.GroupVersionKind, key client.ObjectKey) Object {
	return Object{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: key.Namespace, Name: key.Name}
}

// fromArtifact continues with the generator that has made an ExternalArtifact.
func (t tracer) fromArtifact(ctx context.Context, p Path, o Object) []Path {
	made := &sourcev1.ExternalArtifact{}
	if failed := t.read(ctx, p, &o, made); failed != nil {
		return failed
	}
	text := ""
	if artifact := made.GetArtifact(); artifact != nil {
		text = shortRevision(artifact.Revision)
	}
	p = p.and(o, text)
	generator, named := targets.GeneratorOf(made)
	if !named {
		return p.ends("no ArtifactGenerator has made ExternalArtifact %s/%s", o.Namespace, o.Name)
	}
	return t.from(ctx, p, refTo(generatorKind, generator))
}

// fromGenerator continues with each source of a generator that a release may come by.
func (t tracer) fromGenerator(ctx context.Context, p Path, o Object) []Path {
	generator := &generatorv1.ArtifactGenerator{}
	if failed := t.read(ctx, p, &o, generator); failed != nil {
		return failed
	}
	p = p.and(o, "")
	var all []Path
	for _, source := range generator.Spec.Sources {
		if targets.LeadsOn(source.Kind) {
			ref := targets.SourceOfGenerator(generator, source)
			all = append(all, t.from(ctx, p, refTo(sourcev1.GroupVersion.WithKind(ref.Kind), ref.NamespacedName))...)
		}
	}
	if len(all) == 0 {
		return p.ends("no Rollout writes a source of ArtifactGenerator %s/%s", o.Namespace, o.Name)
	}
	return all
}

// arriving returns the paths that lead to an ImageRepository: a generator may have sources that
// no Rollout writes.
func arriving(all []Path) []Path {
	return slices.DeleteFunc(slices.Clone(all), func(p Path) bool { return p.End != "" })
}
