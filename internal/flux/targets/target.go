// SPDX-License-Identifier: Apache-2.0

// Package targets knows the Flux objects that a Rollout drives: it finds them,
// writes the one field that is the Rollout's, and reads from their status
// whether Flux has really applied what was written.
package targets

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Target is a Flux object that carries a Rollout's release, or that applies
// one which does. Exactly one of Repository, Kustomization and HelmRelease is set.
type Target struct {
	// Repository whose spec.ref.tag is the Rollout's.
	Repository *sourcev1.OCIRepository
	// Kustomization whose substitutes are the Rollout's, or that consumes a
	// Repository of the Rollout.
	Kustomization *kustomizev1.Kustomization
	// HelmRelease that takes its chart from a Repository of the Rollout. It is only
	// read.
	HelmRelease *helmv2.HelmRelease
	// Variables of the Kustomization that are the Rollout's, sorted. Empty if
	// it only consumes.
	Variables []string
	// Source that the Kustomization or HelmRelease consumes, if that is an OCIRepository.
	Source *sourcev1.OCIRepository
}

// Object is the Kubernetes object behind the target.
func (t Target) Object() client.Object {
	switch {
	case t.Repository != nil:
		return t.Repository
	case t.HelmRelease != nil:
		return t.HelmRelease
	}
	return t.Kustomization
}

// Kind of the object.
func (t Target) Kind() string {
	switch {
	case t.Repository != nil:
		return sourcev1.OCIRepositoryKind
	case t.HelmRelease != nil:
		return helmv2.HelmReleaseKind
	}
	return kustomizev1.KustomizationKind
}

// String names the target in a message.
func (t Target) String() string {
	return fmt.Sprintf("%s %s/%s", t.Kind(), t.Object().GetNamespace(), t.Object().GetName())
}

// Carries reports whether every field of the target that is the Rollout's
// holds the version. A target that only consumes carries every version.
func (t Target) Carries(version string) bool {
	if t.Repository != nil {
		return t.Repository.Spec.Reference != nil && t.Repository.Spec.Reference.Tag == version
	}
	return !slices.ContainsFunc(t.writable(), func(variable string) bool {
		return substitutes(t.Kustomization)[variable] != version
	})
}

// Versions are those in the fields of the target that are the Rollout's, whoever set
// them; none of a target that only consumes.
func (t Target) Versions() []string {
	var versions []string
	for _, version := range t.values() {
		if version != "" {
			versions = append(versions, version)
		}
	}
	return versions
}

// Unset reports whether a field of the target that is the Rollout's holds nothing.
func (t Target) Unset() bool { return slices.Contains(t.values(), "") }

func (t Target) values() []string {
	switch {
	case t.Repository != nil && t.Repository.Spec.Reference != nil:
		return []string{t.Repository.Spec.Reference.Tag}
	case t.Repository != nil:
		return []string{""}
	}
	var values []string
	for _, variable := range t.writable() {
		values = append(values, substitutes(t.Kustomization)[variable])
	}
	return values
}

// writable are the variables that Flux accepts.
func (t Target) writable() []string {
	return slices.DeleteFunc(slices.Clone(t.Variables), func(v string) bool { return !validVariable.MatchString(v) })
}

// invalid are the variables that would break the Kustomization.
func (t Target) invalid() []string {
	return slices.DeleteFunc(slices.Clone(t.Variables), func(v string) bool { return validVariable.MatchString(v) })
}

// validVariable is what kustomize-controller accepts as the name of a
// variable; with any other it refuses the whole Kustomization.
var validVariable = regexp.MustCompile(`^[_[:alpha:]][_[:alpha:][:digit:]]*$`)

func substitutes(k *kustomizev1.Kustomization) map[string]string {
	if k.Spec.PostBuild == nil {
		return nil
	}
	return k.Spec.PostBuild.Substitute
}

// RolloutOf returns the name of the Rollout that writes the repository's tag;
// empty if there is none.
func RolloutOf(repository client.Object) string {
	return repository.GetAnnotations()[v1alpha1.RolloutAnnotation]
}

// VariablesOf returns the variables that a Rollout writes into a
// Kustomization, sorted.
func VariablesOf(kustomization client.Object, rollout string) []string {
	var variables []string
	for key, name := range kustomization.GetAnnotations() {
		if variable, ok := VariableOf(key); ok && name == rollout {
			variables = append(variables, variable)
		}
	}
	slices.Sort(variables)
	return variables
}

// mostRollouts may write into a Kustomization: each change of it wakes all of them, and
// annotations have room for thousands of names.
const mostRollouts = 50

// RolloutsOf returns the names of the Rollouts that write into a Kustomization, sorted;
// of too many the first ones, which say so.
func RolloutsOf(kustomization client.Object) []string {
	named := rolloutsNamedBy(kustomization)
	return named[:min(len(named), mostRollouts)]
}

func rolloutsNamedBy(kustomization client.Object) []string {
	var rollouts []string
	for key, name := range kustomization.GetAnnotations() {
		if _, ok := VariableOf(key); ok && name != "" {
			rollouts = append(rollouts, name)
		}
	}
	slices.Sort(rollouts)
	return slices.Compact(rollouts)
}

// VariableOf takes the variable out of a substitute annotation's key, if it is one. A dot
// cannot be part of it.
func VariableOf(key string) (string, bool) {
	rest, ok := strings.CutPrefix(key, v1alpha1.SubstituteAnnotationPrefix)
	if !ok {
		return "", false
	}
	variable, ok := strings.CutSuffix(rest, v1alpha1.SubstituteAnnotationSuffix)
	return variable, ok && variable != "" && !strings.Contains(variable, ".")
}
