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
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Target is a Flux object that contains a Rollout's release, or that applies such an
// object. Exactly one of Repository, Kustomization and HelmRelease is set.
type Target struct {
	// Repository is an OCIRepository whose spec.ref.tag belongs to the Rollout.
	Repository *sourcev1.OCIRepository
	// Kustomization has substitutes that belong to the Rollout, or consumes a Repository
	// of the Rollout.
	Kustomization *kustomizev1.Kustomization
	// HelmRelease takes its chart from a Repository of the Rollout. It is only read.
	HelmRelease *helmv2.HelmRelease
	// Variables are the variables of the Kustomization that belong to the Rollout,
	// sorted. It is empty if the Kustomization only consumes.
	Variables []string
	// Source is the OCIRepository that the Kustomization or HelmRelease consumes, if any.
	Source *sourcev1.OCIRepository
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
		return sourcev1.OCIRepositoryKind
	case t.HelmRelease != nil:
		return helmv2.HelmReleaseKind
	}
	return kustomizev1.KustomizationKind
}

// String returns the name of the target in a message.
func (t Target) String() string {
	return fmt.Sprintf("%s %s/%s", t.Kind(), t.Object().GetNamespace(), t.Object().GetName())
}

// Carries reports whether every field of the target that belongs to the Rollout has the
// version. It returns true for a target that only consumes.
func (t Target) Carries(version string) bool {
	if t.Repository != nil {
		return t.Repository.Spec.Reference != nil && t.Repository.Spec.Reference.Tag == version
	}
	return !slices.ContainsFunc(t.writable(), func(variable string) bool {
		return substitutes(t.Kustomization)[variable] != version
	})
}

// Versions returns the values of the fields of the target that belong to the Rollout, no
// matter who set them. It is empty for a target that only consumes.
func (t Target) Versions() []string {
	var versions []string
	for _, version := range t.values() {
		if version != "" {
			versions = append(versions, version)
		}
	}
	return versions
}

// Unset reports whether a field of the target that belongs to the Rollout is empty.
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
	var variables []string
	for key, name := range kustomization.GetAnnotations() {
		if variable, ok := VariableOf(key); ok && name == rollout {
			variables = append(variables, variable)
		}
	}
	slices.Sort(variables)
	return variables
}

// mostRollouts is how many Rollouts may write into a Kustomization: each change of it
// wakes all of them, and the annotations may contain thousands of names.
const mostRollouts = 50

// RolloutsOf returns the names of the Rollouts that write into a Kustomization, sorted.
// If there are too many, it returns the first ones, and these report the problem.
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

// VariableOf returns the variable in the key of a substitute annotation, and whether the
// key is one. A variable cannot contain a dot.
func VariableOf(key string) (string, bool) {
	rest, ok := strings.CutPrefix(key, v1alpha1.SubstituteAnnotationPrefix)
	if !ok {
		return "", false
	}
	variable, ok := strings.CutSuffix(rest, v1alpha1.SubstituteAnnotationSuffix)
	return variable, ok && variable != "" && !strings.Contains(variable, ".")
}
