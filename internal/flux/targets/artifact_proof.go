// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/live"
)

// writers returns the Rollouts that write what the artifact is made of.
func (a *Artifact) writers() []types.NamespacedName {
	if a == nil {
		return nil
	}
	var all []types.NamespacedName
	a.each(func(each *Artifact) {
		all = append(all, each.rollouts...)
		for _, p := range each.parts {
			if p.repository != nil {
				all = append(all, types.NamespacedName{Namespace: p.repository.GetNamespace(), Name: RolloutOf(p.repository)})
			}
		}
	})
	return all
}

// lacking returns why the target is not offered the release.
func (t Target) lacking(release Release) observation {
	if t.Artifact == nil || !t.Carries(release) || !t.Artifact.offered(release) {
		return pending
	}
	near := t.Object().GetNamespace()
	found := t.Artifact.hindrance(release, t.Observed, near)
	if found == pending && t.Forbidden != nil {
		return t.Forbidden.hindrance(near)
	}
	return found
}

// SourceForbidden says that this account may not read a source of an ArtifactGenerator.
type SourceForbidden struct {
	Generator client.ObjectKey
	Source    Ref
}

func (f *SourceForbidden) Error() string {
	return fmt.Sprintf("this account may not read %s, which ArtifactGenerator %s takes", f.Source, f.Generator)
}

func (f *SourceForbidden) hindrance(near string) observation {
	source := "a source"
	if f.Generator.Namespace == near {
		source = f.Source.Kind + " " + nameNear(f.Source.NamespacedName, near)
	}
	return waiting(v1alpha1.TargetArtifactUnproven, "the controller may not read %s, which ArtifactGenerator %s takes, so it cannot compare what the generator has seen: "+
		"allow it, or set the revision of the artifact to the alias of what the Rollout writes", source, nameNear(f.Generator, near))
}

// Unobserved returns the generators of which it must be known whether they have seen their
// sources as they are now: all else says that the target has applied the release, or that it
// has failed.
func (t Target) Unobserved(rollout *v1alpha1.Rollout, release Release) []*generatorv1.ArtifactGenerator {
	if t.Artifact == nil {
		return nil
	}
	assumed, asked := t, []*generatorv1.ArtifactGenerator{}
	assumed.Observed = map[types.UID]bool{}
	t.Artifact.each(func(a *Artifact) {
		if of, known := a.revisionFrom(); known && of == "" && !assumed.Observed[a.Generator.UID] {
			assumed.Observed[a.Generator.UID] = true
			asked = append(asked, a.Generator)
		}
	})
	if state := assumed.Observe(rollout, release).State; state != v1alpha1.TargetApplied && state != v1alpha1.TargetFailed {
		return nil
	}
	return asked
}

// Revisions returns what the sources of the artifact that lead to the Rollout offer.
func (a *Artifact) Revisions() string {
	var all []string
	a.each(func(each *Artifact) {
		for _, p := range each.parts {
			all = append(all, p.revision())
		}
	})
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

// HasObserved reports whether a generator has seen its sources as they are now. It reads each
// of them. It returns false if there are too many, or one has nothing to offer, and
// SourceForbidden if one may not be read.
func HasObserved(ctx context.Context, reader client.Reader, g *generatorv1.ArtifactGenerator) (bool, error) {
	if len(g.Spec.Sources) > mostSources {
		return false, nil
	}
	observed := map[string]generatorv1.ObservedSource{}
	for _, s := range g.Spec.Sources {
		ref := SourceOfGenerator(g, s)
		artifact, err := artifactOf(ctx, reader, ref)
		if apierrors.IsForbidden(err) {
			return false, &SourceForbidden{Generator: client.ObjectKeyFromObject(g), Source: ref}
		}
		if err != nil || artifact == nil {
			return false, err
		}
		observed[s.Alias] = generatorv1.ObservedSource{Digest: artifact.Digest, Revision: artifact.Revision, URL: artifact.URL}
	}
	return generatorv1.HashObservedSources(observed) == g.Status.ObservedSourcesDigest, nil
}

// artifactOf returns what a source offers; nil if that is nothing, or it does not
// exist, or its kind does not.
func artifactOf(ctx context.Context, reader client.Reader, ref Ref) (*meta.Artifact, error) {
	source, known := newSource(ref.Kind)
	if !known {
		return nil, nil
	}
	var artifact *meta.Artifact
	note := func(o client.Object) { artifact = o.(interface{ GetArtifact() *meta.Artifact }).GetArtifact() }
	whole := false
	err := reader.Get(ctx, ref.NamespacedName, source, live.Also(func(o client.Object) func(client.Object) {
		whole = true
		note(o)
		return func(client.Object) {}
	}))
	switch {
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get %s: %w", ref, err)
	case !whole: // another reader keeps all of it
		note(source)
	}
	return artifact, nil
}

func newSource(kind string) (client.Object, bool) {
	switch kind {
	case sourcev1.OCIRepositoryKind:
		return &sourcev1.OCIRepository{}, true
	case sourcev1.GitRepositoryKind:
		return &sourcev1.GitRepository{}, true
	case sourcev1.BucketKind:
		return &sourcev1.Bucket{}, true
	case sourcev1.HelmChartKind:
		return &sourcev1.HelmChart{}, true
	case sourcev1.ExternalArtifactKind:
		return &sourcev1.ExternalArtifact{}, true
	}
	return nil, false
}

func artifactIn(o client.Object) []string {
	if key, takes := ArtifactOf(o); takes {
		return []string{artifactRef(key).String()}
	}
	return nil
}

func foreignArtifactIn(o client.Object) []string {
	if key, takes := ArtifactOf(o); takes && key.Namespace != o.GetNamespace() {
		return artifactIn(o)
	}
	return nil
}

// ForeignArtifact returns the ExternalArtifact of another namespace by which the release
// reaches the target, as "namespace/name". It is empty if there is none.
func (t Target) ForeignArtifact() (foreign string) {
	if t.Artifact == nil {
		return ""
	}
	t.Artifact.each(func(a *Artifact) {
		if a.Name.Namespace != t.Object().GetNamespace() {
			foreign = a.Name.String()
		}
	})
	return foreign
}

// artifactReader reads past the caches by what a release reaches targets: each generator
// once, and each artifact as often as it is a target's.
type artifactReader struct {
	reader     client.Reader
	generators map[client.ObjectKey]*generatorv1.ArtifactGenerator
}

// again returns the artifact of a target as it is now. It returns nil if the target takes
// another one.
func (r artifactReader) again(ctx context.Context, t Target) (*Artifact, error) {
	if key, takes := ArtifactOf(t.Object()); t.Artifact == nil || !takes || key != t.Artifact.Name {
		return nil, nil
	}
	return r.read(ctx, t.Artifact, MostArtifactsInRow)
}

func (r artifactReader) read(ctx context.Context, a *Artifact, row int) (*Artifact, error) {
	again := *a
	if row == 0 {
		return &again, nil
	}
	var err error
	if again.Generator, err = r.generator(ctx, client.ObjectKeyFromObject(a.Generator)); err != nil {
		return nil, err
	}
	if belongs, err := again.read(ctx, r.reader); err != nil {
		return nil, err
	} else if !belongs {
		again.Object = nil
	}
	again.parts = slices.Clone(a.parts)
	for i := range again.parts {
		if err := r.refresh(ctx, &again.parts[i], row); err != nil {
			return nil, err
		}
	}
	return &again, nil
}

func (r artifactReader) refresh(ctx context.Context, p *ingredient, row int) (err error) {
	if p.artifact != nil {
		p.artifact, err = r.read(ctx, p.artifact, row-1)
		return err
	}
	ref := RefTo(p.repository)
	now := ref.New()
	if err := r.reader.Get(ctx, ref.NamespacedName, now); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get %s: %w", ref, err)
	}
	now.SetNamespace(ref.Namespace) // if it is gone, it offers nothing
	now.SetName(ref.Name)
	p.repository = now
	return nil
}

// generator returns an empty one, which has made nothing, if it does not exist.
func (r artifactReader) generator(ctx context.Context, key client.ObjectKey) (*generatorv1.ArtifactGenerator, error) {
	if known := r.generators[key]; known != nil {
		return known, nil
	}
	now := &generatorv1.ArtifactGenerator{}
	if err := r.reader.Get(ctx, key, now); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get ArtifactGenerator %s: %w", key, err)
	}
	now.Namespace, now.Name = key.Namespace, key.Name
	r.generators[key] = now
	return now, nil
}
