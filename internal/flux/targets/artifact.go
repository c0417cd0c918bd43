// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

const (
	// MostArtifactsInRow is how many ExternalArtifacts, each made of the one before, may lie
	// between a Repository and what applies its release.
	MostArtifactsInRow = 3
	// mostSources is how many sources of an ArtifactGenerator are compared with what it has
	// seen.
	mostSources = 20
)

// Artifact is an ExternalArtifact that an ArtifactGenerator makes of Repositories of a
// Rollout.
type Artifact struct {
	// Name of the ExternalArtifact, with its namespace.
	Name client.ObjectKey
	// Object is nil while the generator has not made it.
	Object *sourcev1.ExternalArtifact
	// Generator makes it.
	Generator *generatorv1.ArtifactGenerator

	parts []ingredient
	// rollouts are all that write what it is made of.
	rollouts []types.NamespacedName
}

// ingredient is a source of which the artifact has files, and which leads to the Rollout: one of
// its Repositories, or an artifact that is made of one.
type ingredient struct {
	alias      string
	repository Repository
	artifact   *Artifact
}

func (p ingredient) revision() string {
	if p.artifact != nil {
		return p.artifact.revision()
	}
	return revisionOf(p.repository)
}

// ArtifactOf returns the ExternalArtifact that a Kustomization or HelmRelease takes, and
// whether it takes one.
func ArtifactOf(o client.Object) (client.ObjectKey, bool) {
	key, kind := client.ObjectKey{Namespace: o.GetNamespace()}, ""
	switch o := o.(type) {
	case *kustomizev1.Kustomization:
		key.Namespace, key.Name, kind = o.Spec.SourceRef.Namespace, o.Spec.SourceRef.Name, o.Spec.SourceRef.Kind
	case *helmv2.HelmRelease:
		if ref := o.Spec.ChartRef; ref != nil {
			key.Namespace, key.Name, kind = ref.Namespace, ref.Name, ref.Kind
		}
	}
	if key.Namespace == "" {
		key.Namespace = o.GetNamespace()
	}
	return key, kind == sourcev1.ExternalArtifactKind
}

// GeneratorOf returns the ArtifactGenerator that an ExternalArtifact names, and whether it
// names one. Anyone may write the name of one.
func GeneratorOf(e *sourcev1.ExternalArtifact) (client.ObjectKey, bool) {
	ref := e.Spec.SourceRef
	if ref == nil || ref.Kind != generatorv1.ArtifactGeneratorKind || ref.Namespace != "" && ref.Namespace != e.Namespace {
		return client.ObjectKey{}, false
	}
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	return client.ObjectKey{Namespace: e.Namespace, Name: ref.Name}, group == generatorv1.GroupVersion.Group
}

// outputs returns the outputs of the generator that may be the artifact. With a pattern of
// paths, one output makes an artifact for each folder.
func (a *Artifact) outputs() []generatorv1.OutputArtifact { return outputsOf(a.Generator, a.Name.Name) }

func outputsOf(g *generatorv1.ArtifactGenerator, name string) []generatorv1.OutputArtifact {
	if g.Spec.PathPattern != "" {
		return g.Spec.OutputArtifacts
	}
	return slices.DeleteFunc(slices.Clone(g.Spec.OutputArtifacts), func(o generatorv1.OutputArtifact) bool { return o.Name != name })
}

// copyFrom reports whether one of the outputs has files of a source.
func copyFrom(outputs []generatorv1.OutputArtifact, alias string) bool {
	return slices.ContainsFunc(outputs, func(o generatorv1.OutputArtifact) bool {
		return slices.ContainsFunc(o.Copy, func(c generatorv1.CopyOperation) bool { return strings.HasPrefix(c.From, "@"+alias+"/") })
	})
}

// revisionFrom returns the alias of the source whose revision the artifact has. It is empty
// if its revision is the digest of its content. It is not known if outputs that may be the
// artifact differ.
func (a *Artifact) revisionFrom() (alias string, known bool) {
	for i, o := range a.outputs() {
		of := strings.TrimPrefix(o.Revision, "@")
		if i > 0 && of != alias {
			return "", false
		}
		alias = of
	}
	return alias, true
}

func (a *Artifact) revision() string {
	if a.Object == nil || a.Object.Status.Artifact == nil {
		return ""
	}
	return a.Object.Status.Artifact.Revision
}

// isListed reports whether the generator says that it has made the artifact.
func (a *Artifact) isListed() bool { return a.listed() != nil }

func (a *Artifact) listed() *generatorv1.ExternalArtifactReference {
	for i := range a.Generator.Status.Inventory {
		if listed := &a.Generator.Status.Inventory[i]; listed.Name == a.Name.Name {
			return listed
		}
	}
	return nil
}

// offered reports whether Flux has pulled the release into each Repository that the
// artifact is made of.
func (a *Artifact) offered(release Release) bool { return a.offeredWithin(release, MostArtifactsInRow) }

func (a *Artifact) offeredWithin(release Release, row int) bool {
	return row > 0 && !slices.ContainsFunc(a.parts, func(p ingredient) bool {
		if p.artifact != nil {
			return !p.artifact.offeredWithin(release, row-1)
		}
		return pulled(p.repository, release) == ""
	})
}

// holds reports whether the artifact has the release: it has the revision of each source
// that leads to the Rollout, or its generator has seen all sources as they are now.
func (a *Artifact) holds(release Release, observed map[types.UID]bool) bool {
	return a.holdsWithin(release, observed, MostArtifactsInRow)
}

func (a *Artifact) holdsWithin(release Release, observed map[types.UID]bool, row int) bool {
	if row == 0 || a.revision() == "" || !a.isListed() {
		return false
	}
	return !slices.ContainsFunc(a.parts, func(p ingredient) bool {
		if p.artifact != nil && !p.artifact.holdsWithin(release, observed, row-1) || p.artifact == nil && pulled(p.repository, release) == "" {
			return true
		}
		return !a.took(p, observed)
	})
}

// took reports whether the artifact was made of what a source offers now.
func (a *Artifact) took(p ingredient, observed map[types.UID]bool) bool {
	switch of, known := a.revisionFrom(); {
	case !known:
		return false
	case of != "":
		return of == p.alias && a.revision() == p.revision()
	}
	return observed[a.Generator.UID] && a.isBuilt()
}

// isBuilt reports whether the generator is done, and the artifact is what it has made.
func (a *Artifact) isBuilt() bool {
	ready := apimeta.FindStatusCondition(a.Generator.Status.Conditions, meta.ReadyCondition)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == a.Generator.Generation &&
		a.isListed() && a.listed().Digest == a.Object.Status.Artifact.Digest
}

// each calls do with the artifact and with those that it is made of.
func (a *Artifact) each(do func(*Artifact)) { a.eachWithin(do, MostArtifactsInRow) }

func (a *Artifact) eachWithin(do func(*Artifact), row int) {
	if row == 0 {
		return
	}
	for _, p := range a.parts {
		if p.artifact != nil {
			p.artifact.eachWithin(do, row-1)
		}
	}
	do(a)
}

// isMadeOf reports whether the artifact has files of a Repository.
func (a *Artifact) isMadeOf(repository Ref) (is bool) {
	a.each(func(each *Artifact) {
		is = is || slices.ContainsFunc(each.parts, func(p ingredient) bool {
			return p.repository != nil && RefTo(p.repository) == repository
		})
	})
	return is
}

// hindrance returns why the artifact does not hold a release that Flux has pulled. A message
// about a generator of another namespace than near does not repeat its words.
func (a *Artifact) hindrance(release Release, observed map[types.UID]bool, near string) (found observation) {
	a.each(func(each *Artifact) {
		if found.isNothing() && !each.holds(release, observed) {
			found = each.ownHindrance(near)
		}
	})
	return found
}

func (a *Artifact) ownHindrance(near string) observation {
	generator := nameNear(client.ObjectKeyFromObject(a.Generator), near)
	ready := apimeta.FindStatusCondition(a.Generator.Status.Conditions, meta.ReadyCondition)
	switch unproven := a.unproven(generator, near); {
	case a.Generator.IsDisabled():
		return waiting(v1alpha1.TargetSuspended, "ArtifactGenerator %s is paused: remove its annotation %s", generator, generatorv1.ReconcileAnnotation)
	case !unproven.isNothing():
		return unproven
	case ready != nil && ready.Status == metav1.ConditionFalse && a.Generator.Namespace != near:
		return waiting(v1alpha1.TargetArtifactFailed, "ArtifactGenerator %s has failed (%s)", generator, ready.Reason)
	case ready != nil && ready.Status == metav1.ConditionFalse:
		return waiting(v1alpha1.TargetArtifactFailed, "ArtifactGenerator %s has failed (%s): %s", generator, ready.Reason, ready.Message)
	case a.Object == nil:
		return waiting(v1alpha1.TargetSourceMissing, "ArtifactGenerator %s has not made its ExternalArtifact %s yet", generator, nameNear(a.Name, near))
	}
	return pending
}

// unproven returns why nothing can show that the artifact holds a release.
func (a *Artifact) unproven(generator, near string) observation {
	name, alias := nameNear(a.Name, near), a.parts[0].alias
	of, known := a.revisionFrom()
	isOther := of != "" && slices.ContainsFunc(a.parts, func(p ingredient) bool { return p.alias != of })
	switch {
	case !known:
		return waiting(v1alpha1.TargetArtifactUnproven, "the artifacts of ArtifactGenerator %s take their revisions from different places, "+
			"so nothing shows whether ExternalArtifact %s has a new release: remove revision from all of them", generator, name)
	case isOther && len(a.parts) > 1:
		return waiting(v1alpha1.TargetArtifactUnproven, "ExternalArtifact %s of ArtifactGenerator %s takes its revision from @%s, "+
			"so a new release in its other sources shows neither to Flux nor to this Rollout: remove its revision", name, generator, of)
	case isOther:
		return waiting(v1alpha1.TargetArtifactUnproven, "ExternalArtifact %s of ArtifactGenerator %s takes its revision from @%s, "+
			"so a new release in it shows neither to Flux nor to this Rollout: remove its revision, or set it to @%s", name, generator, of, alias)
	case of == "" && len(a.Generator.Spec.Sources) > mostSources:
		return waiting(v1alpha1.TargetArtifactUnproven, "ArtifactGenerator %s has %d sources, and at most %d can be compared with what it has seen: "+
			"set the revision of ExternalArtifact %s to @%s", generator, len(a.Generator.Spec.Sources), mostSources, name, alias)
	}
	return observation{}
}

// nameNear returns a name, with its namespace if that is another one than near.
func nameNear(key client.ObjectKey, near string) string {
	if key.Namespace == near {
		return key.Name
	}
	return key.String()
}

// Origin returns the first Repository of the Rollout that the artifact is made of.
func (a *Artifact) Origin() (origin Ref) {
	a.each(func(each *Artifact) {
		for _, p := range each.parts {
			if p.repository != nil && origin.Name == "" {
				origin = RefTo(p.repository)
			}
		}
	})
	return origin
}
