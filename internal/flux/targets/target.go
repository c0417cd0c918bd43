// SPDX-License-Identifier: Apache-2.0

// Package targets contains the Flux objects that a Rollout writes. It finds them, writes
// the fields that belong to the Rollout, and reads from their status whether Flux has
// really applied what was written.
package targets

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Target is a Flux object that contains a Rollout's release, or that applies such an
// object. Exactly one of Repository, Kustomization and HelmRelease is set.
type Target struct {
	// Repository is one whose spec.ref.tag belongs to the Rollout.
	Repository Repository
	// Kustomization has substitutes that belong to the Rollout, or consumes a Repository
	// of the Rollout.
	Kustomization *kustomizev1.Kustomization
	// HelmRelease has values that belong to the Rollout, or takes its chart from a
	// Repository of the Rollout.
	HelmRelease *helmv2.HelmRelease
	// Variables are the variables of the Kustomization that belong to the Rollout,
	// sorted. It is empty if the Kustomization only consumes.
	Variables []string
	// Paths are the paths of the values of the HelmRelease that belong to the Rollout,
	// sorted. It is empty if the HelmRelease only consumes.
	Paths []string
	// Digests are those of the Variables or Paths that get the digest of the release, sorted.
	// For a Repository whose spec.ref.digest belongs to the Rollout, it has that field.
	Digests []string
	// Ranked is the image of whose tags the Rollout's ImagePolicy says which is a release, in
	// its canonical form; empty if it is not known.
	Ranked string
	// Source is the Repository that the Kustomization or HelmRelease consumes, if any. Of
	// GitRepositories it is only one that a Rollout writes.
	Source Repository
	// Artifact is the ExternalArtifact that the Kustomization or HelmRelease takes, if it is
	// made of a Repository of the Rollout. Source is then nil.
	Artifact *Artifact
	// Artifacts are those that are made of the Repository.
	Artifacts []*Artifact
	// Observed are the generators that are known to have seen their sources as they are now.
	Observed map[types.UID]bool
	// Forbidden is what cannot be known of them, if anything.
	Forbidden *SourceForbidden
	// Elsewhere are the names of what consumes the Repository from other namespaces,
	// sorted. See WithConsumersElsewhere.
	Elsewhere []string
}

// Object returns the Kubernetes object of the target.
func (t Target) Object() client.Object {
	switch {
	case t.Repository != nil:
		return t.Repository
	case t.HelmRelease != nil:
		return t.HelmRelease
	}
	return t.Kustomization
}

// Kind returns the kind of the object.
func (t Target) Kind() string {
	switch {
	case t.Repository != nil:
		return repositoryKind(t.Repository)
	case t.HelmRelease != nil:
		return helmv2.HelmReleaseKind
	}
	return kustomizev1.KustomizationKind
}

// String returns the name of the target in a message.
func (t Target) String() string {
	return fmt.Sprintf("%s %s/%s", t.Kind(), t.Object().GetNamespace(), t.Object().GetName())
}

// Carries reports whether every field of the target that belongs to the Rollout has what it
// gets of the release. It returns true for a target that only consumes.
func (t Target) Carries(release Release) bool {
	return !t.awaitsDigest(release) && !slices.ContainsFunc(t.fields(), func(f field) bool { return f.value != f.wanted(release) })
}

// Versions returns the values of the fields of the target that belong to the Rollout and get
// its tag, no matter who set them. It is empty for a target that only consumes.
func (t Target) Versions() []string {
	var versions []string
	for _, f := range t.versions() {
		if f.value != "" {
			versions = append(versions, f.value)
		}
	}
	return versions
}

// Unset reports whether a field of the target that belongs to the Rollout and gets its tag
// is empty.
func (t Target) Unset() bool {
	return slices.ContainsFunc(t.versions(), func(f field) bool { return f.value == "" })
}

// writable returns the variables that Flux accepts.
func (t Target) writable() []string {
	return slices.DeleteFunc(slices.Clone(t.Variables), func(v string) bool { return !validVariable.MatchString(v) })
}

// invalid returns the variables that would break the Kustomization.
func (t Target) invalid() []string {
	return slices.DeleteFunc(slices.Clone(t.Variables), func(v string) bool { return validVariable.MatchString(v) })
}

// validVariable matches the variable names that kustomize-controller accepts. It refuses
// the whole Kustomization for any other name.
var validVariable = regexp.MustCompile(`^[_[:alpha:]][_[:alpha:][:digit:]]*$`)

func substitutes(k *kustomizev1.Kustomization) map[string]string {
	if k.Spec.PostBuild == nil {
		return nil
	}
	return k.Spec.PostBuild.Substitute
}

// RolloutOf returns the name of the Rollout that writes the repository's tag. It is empty
// if there is none.
func RolloutOf(repository client.Object) string {
	return repository.GetAnnotations()[v1alpha1.RolloutAnnotation]
}

// VariablesOf returns the variables that a Rollout writes into a Kustomization, sorted.
func VariablesOf(kustomization client.Object, rollout string) []string {
	return annotated(kustomization, rollout, variableOf)
}

// annotated returns the names in the keys of the annotations with a value, sorted.
func annotated(o client.Object, value string, of func(key string) (string, bool)) []string {
	var names []string
	for key, is := range o.GetAnnotations() {
		if name, ok := of(key); ok && is == value {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// IsShared reports whether several Rollouts deploy by a Kustomization or HelmRelease: they
// write into it, or into the source that it consumes. What becomes of its objects says
// nothing about the release of one of them.
func (t Target) IsShared() bool {
	if t.Repository != nil {
		return false
	}
	o := t.Object()
	rollouts := map[types.NamespacedName]bool{}
	for _, name := range rolloutsNamedBy(o) {
		rollouts[types.NamespacedName{Namespace: o.GetNamespace(), Name: name}] = true
	}
	if t.Source != nil && RolloutOf(t.Source) != "" {
		rollouts[types.NamespacedName{Namespace: t.Source.GetNamespace(), Name: RolloutOf(t.Source)}] = true
	}
	for _, writer := range t.Artifact.writers() {
		rollouts[writer] = true
	}
	return len(rollouts) > 1
}

// mostRollouts is how many Rollouts may write into one object: each change of it wakes all
// of them, and the annotations may contain thousands of names.
const mostRollouts = 50

// RolloutsOf returns the names of the Rollouts that write into a Kustomization or a
// HelmRelease, sorted. If there are too many, it returns the first ones, and these report
// the problem.
func RolloutsOf(o client.Object) []string {
	named := rolloutsNamedBy(o)
	return named[:min(len(named), mostRollouts)]
}

func rolloutsNamedBy(o client.Object) []string {
	writes := variableOf
	if _, ok := o.(*helmv2.HelmRelease); ok {
		writes = pathOf
	}
	var rollouts []string
	for key, name := range o.GetAnnotations() {
		if _, ok := writes(key); ok && name != "" {
			rollouts = append(rollouts, name)
		}
	}
	slices.Sort(rollouts)
	return slices.Compact(rollouts)
}

// tooMany returns the conflict of an object that names too many Rollouts, if it does.
func tooMany(kind string, o client.Object) observation {
	named := len(rolloutsNamedBy(o))
	if named <= mostRollouts {
		return observation{}
	}
	return conflict(v1alpha1.TargetTooManyRollouts, "its annotations name %d Rollouts, and at most %d may write into one %s: divide it into several", named, mostRollouts, kind)
}

// variableOf returns the variable in the key of an annotation that assigns it to a Rollout,
// for its tag or its digest, and whether the key is one. A variable cannot contain a dot.
func variableOf(key string) (string, bool) {
	if digest, ok := strings.CutPrefix(key, v1alpha1.DigestSubstituteAnnotationPrefix); ok {
		return digest, digest != "" && !strings.Contains(digest, ".")
	}
	rest, ok := strings.CutPrefix(key, v1alpha1.SubstituteAnnotationPrefix)
	if !ok {
		return "", false
	}
	variable, ok := strings.CutSuffix(rest, v1alpha1.SubstituteAnnotationSuffix)
	return variable, ok && variable != "" && !strings.Contains(variable, ".")
}
