// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/imagepolicy"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
)

// TraceKind is the kind of an [Origin].
const TraceKind = "Trace"

// mostSteps is how many steps a path may have.
const mostSteps = 20

// Origin says where an object comes from.
type Origin struct {
	metav1.TypeMeta `json:",inline"`
	// Paths lead from the object up to an ImageRepository, or as far as they can be
	// followed. There are several if several Rollouts write into one Kustomization.
	Paths []Path `json:"paths"`
}

// Path leads from an object upwards.
type Path struct {
	// Steps are the objects, the one that was asked for first.
	Steps []Step `json:"steps"`
	// End says why the path does not lead to an ImageRepository; empty if it does.
	End string `json:"end,omitempty"`
}

// Step is one object of a path.
type Step struct {
	Object Object `json:"object"`
	// Text is what matters about the object here: the revision of a source, the number of
	// the promotion, or the release that a policy names.
	Text string `json:"text,omitempty"`
}

// Rollouts returns the Rollouts at which the paths arrive, each once.
func (o Origin) Rollouts() []types.NamespacedName {
	var all []types.NamespacedName
	known := map[types.NamespacedName]bool{}
	for _, path := range o.Paths {
		for _, step := range path.Steps {
			key := types.NamespacedName{Namespace: step.Object.Namespace, Name: step.Object.Name}
			if step.Object.GroupKind() == rolloutKind.GroupKind() && !known[key] {
				known[key] = true
				all = append(all, key)
			}
		}
	}
	return all
}

var rolloutKind = v1alpha1.GroupVersion.WithKind(v1alpha1.RolloutKind)

// Trace goes from an object up to the release that it comes from, by its owners, the
// labels of Flux, the references to sources, and the annotations of the targets. It fails
// only if the object itself cannot be read; a path that ends early says why.
func Trace(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, namespace, name string) (Origin, error) {
	start := &metav1.PartialObjectMetadata{}
	start.SetGroupVersionKind(kind)
	if err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, start); err != nil {
		return Origin{}, fmt.Errorf("read %s %s/%s: %w", kind.Kind, namespace, name, err)
	}
	t := tracer{reader}
	paths := t.from(ctx, Path{}, objectRef(kind, start))
	return Origin{TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: TraceKind}, Paths: paths}, nil
}

func objectRef(kind schema.GroupVersionKind, o client.Object) Object {
	return Object{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
}

type tracer struct{ reader client.Reader }

// and returns a path with one more step. The receiver stays as it is: paths can fork.
func (p Path) and(o Object, text string) Path {
	return Path{Steps: append(p.Steps[:len(p.Steps):len(p.Steps)], Step{o, text})}
}

// has reports whether an object is on the path already.
func (p Path) has(o Object) bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return placeOf(s.Object) == placeOf(o) })
}

// ends returns the path with the reason why it ends.
func (p Path) ends(format string, args ...any) []Path {
	p.End = fmt.Sprintf(format, args...)
	return []Path{p}
}

// from continues a path at an object.
func (t tracer) from(ctx context.Context, p Path, o Object) []Path {
	switch {
	case len(p.Steps) >= mostSteps:
		return p.ends("at most %d steps are followed", mostSteps)
	case p.has(o):
		return p.ends("it goes in a circle: %s is on the path already", o)
	}
	switch o.GroupKind() {
	case schema.GroupKind{Group: kustomizev1.GroupVersion.Group, Kind: kustomizev1.KustomizationKind}:
		return t.fromKustomization(ctx, p, o)
	case schema.GroupKind{Group: helmv2.GroupVersion.Group, Kind: helmv2.HelmReleaseKind}:
		return t.fromHelmRelease(ctx, p, o)
	case schema.GroupKind{Group: sourcev1.GroupVersion.Group, Kind: sourcev1.OCIRepositoryKind},
		schema.GroupKind{Group: sourcev1.GroupVersion.Group, Kind: sourcev1.GitRepositoryKind}:
		return t.fromRepository(ctx, p, o)
	case artifactKind.GroupKind():
		return t.fromArtifact(ctx, p, o)
	case generatorKind.GroupKind():
		return t.fromGenerator(ctx, p, o)
	case rolloutKind.GroupKind():
		return t.fromRollout(ctx, p, o)
	}
	return t.fromAny(ctx, p, o)
}

// read fills an object that a path refers to. The paths are not nil if that failed.
func (t tracer) read(ctx context.Context, p Path, o *Object, into client.Object) []Path {
	err := t.reader.Get(ctx, types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, into)
	if err != nil {
		return p.and(*o, "").ends("%s %s/%s: %s", o.Kind, o.Namespace, o.Name, because(err))
	}
	o.UID = into.GetUID()
	return nil
}

// fromAny continues with what has applied an object, or else with its controller.
func (t tracer) fromAny(ctx context.Context, p Path, o Object) []Path {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(o.GroupKind().WithVersion(o.Version))
	if failed := t.read(ctx, p, &o, object); failed != nil {
		return failed
	}
	p = p.and(o, "")
	if by, ok := applierOf(object); ok {
		return t.from(ctx, p, by)
	}
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
		return t.from(ctx, p, Object{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: o.Namespace, Name: owner.Name})
	}
	return p.ends("Flux has not applied %s: it has no label of a Kustomization or a HelmRelease, and no owner", o)
}

// applierOf returns the Flux object that has applied an object, by the labels of Flux.
func applierOf(o client.Object) (Object, bool) {
	for _, kind := range []schema.GroupVersionKind{
		helmv2.GroupVersion.WithKind(helmv2.HelmReleaseKind),
		kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind),
	} {
		name, namespace := o.GetLabels()[kind.Group+"/name"], o.GetLabels()[kind.Group+"/namespace"]
		if name != "" && namespace != "" {
			return Object{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: namespace, Name: name}, true
		}
	}
	return Object{}, false
}

// fromKustomization continues with the Rollouts that write its variables and with its
// source, or else with what has applied the Kustomization itself.
func (t tracer) fromKustomization(ctx context.Context, p Path, o Object) []Path {
	k := &kustomizev1.Kustomization{}
	if failed := t.read(ctx, p, &o, k); failed != nil {
		return failed
	}
	p = p.and(o, shortRevision(k.Status.LastAppliedRevision))
	var all []Path
	for _, rollout := range targets.RolloutsOf(k) {
		all = append(all, t.from(ctx, p, *own(v1alpha1.RolloutKind, k.Namespace, rollout))...)
	}
	source, ok := targets.SourceOf(k)
	return t.fromSource(ctx, p, all, source, ok, k)
}

// fromHelmRelease continues with the Rollouts that write its values and with the source of
// its chart, or else with what has applied the HelmRelease itself.
func (t tracer) fromHelmRelease(ctx context.Context, p Path, o Object) []Path {
	h := &helmv2.HelmRelease{}
	if failed := t.read(ctx, p, &o, h); failed != nil {
		return failed
	}
	text := ""
	if newest := targets.NewestSnapshot(h); newest != nil {
		text = newest.ChartVersion
	}
	p = p.and(o, text)
	var all []Path
	for _, rollout := range targets.RolloutsOf(h) {
		all = append(all, t.from(ctx, p, *own(v1alpha1.RolloutKind, h.Namespace, rollout))...)
	}
	source, ok := targets.ChartOf(h)
	return t.fromSource(ctx, p, all, source, ok, h)
}

// fromSource continues with a repository that a Rollout writes, or an ExternalArtifact that is
// made of one. Without one, and without other paths, it continues with what has applied the
// consumer.
func (t tracer) fromSource(ctx context.Context, p Path, others []Path, source targets.Ref, ok bool, consumer client.Object) []Path {
	ends := p.ends("no Rollout writes %s %s/%s, its source, or what has applied it", p.Steps[len(p.Steps)-1].Object.Kind, consumer.GetNamespace(), consumer.GetName())
	if artifact, takes := targets.ArtifactOf(consumer); takes {
		ends = t.from(ctx, p, refTo(artifactKind, artifact))
		others = append(others, arriving(ends)...)
	}
	if ok {
		repository := source.New()
		err := t.reader.Get(ctx, source.NamespacedName, repository)
		if err != nil && !targets.IsGit(repository) || targets.RolloutOf(repository) != "" {
			repository.SetNamespace(source.Namespace)
			repository.SetName(source.Name)
			return append(others, t.from(ctx, p, *fluxObject(repository))...)
		}
	}
	if len(others) > 0 {
		return others
	}
	if by, ok := applierOf(consumer); ok {
		return t.from(ctx, p, by)
	}
	return ends
}

func (t tracer) fromRepository(ctx context.Context, p Path, o Object) []Path {
	repository := targets.Ref{Kind: o.Kind}.New()
	if failed := t.read(ctx, p, &o, repository); failed != nil {
		return failed
	}
	text := ""
	if artifact := repository.GetArtifact(); artifact != nil {
		text = shortRevision(artifact.Revision)
	}
	p = p.and(o, text)
	if name := targets.RolloutOf(repository); name != "" {
		return t.from(ctx, p, *own(v1alpha1.RolloutKind, repository.GetNamespace(), name))
	}
	if by, ok := applierOf(repository); ok {
		return t.from(ctx, p, by)
	}
	return p.ends("no Rollout writes %s %s/%s: it has no annotation %s", o.Kind, o.Namespace, o.Name, v1alpha1.RolloutAnnotation)
}

func (t tracer) fromRollout(ctx context.Context, p Path, o Object) []Path {
	rollout := &v1alpha1.Rollout{}
	if failed := t.read(ctx, p, &o, rollout); failed != nil {
		return failed
	}
	text := ""
	if current := rollout.Current(); current != nil && current.ID != nil {
		text = "#" + strconv.FormatInt(*current.ID, 10)
	}
	policy := Object{
		Group: imagev1.GroupVersion.Group, Version: imagev1.GroupVersion.Version, Kind: imagev1.ImagePolicyKind,
		Namespace: o.Namespace, Name: rollout.Spec.ReleasesImagePolicy.Name,
	}
	return t.fromPolicy(ctx, p.and(o, text), policy)
}

func (t tracer) fromPolicy(ctx context.Context, p Path, o Object) []Path {
	policy := &imagev1.ImagePolicy{}
	if failed := t.read(ctx, p, &o, policy); failed != nil {
		return failed
	}
	text := "names no release"
	if policy.Status.LatestRef != nil {
		text = "names " + policy.Status.LatestRef.Tag
	}
	p = p.and(o, text)
	key := imagepolicy.RepositoryOf(policy)
	scanned := Object{
		Group: imagev1.GroupVersion.Group, Version: imagev1.GroupVersion.Version, Kind: imagev1.ImageRepositoryKind,
		Namespace: key.Namespace, Name: key.Name,
	}
	repository := &imagev1.ImageRepository{}
	if failed := t.read(ctx, p, &scanned, repository); failed != nil {
		return failed
	}
	return []Path{p.and(scanned, repository.Spec.Image)}
}
