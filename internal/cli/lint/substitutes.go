// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

func substitutePath(variable string) []string {
	return []string{"spec", "postBuild", "substitute", variable}
}

// variableOf returns the variable in the key of an annotation for a version or a digest, and
// whether the controller reads the key as one.
func variableOf(key string) (string, bool) {
	if digest, ok := strings.CutPrefix(key, v1alpha1.DigestSubstituteAnnotationPrefix); ok {
		return digest, digest != "" && !strings.Contains(digest, ".")
	}
	rest, isSubstitute := strings.CutPrefix(key, v1alpha1.SubstituteAnnotationPrefix)
	variable, ends := strings.CutSuffix(rest, v1alpha1.SubstituteAnnotationSuffix)
	return variable, isSubstitute && ends && variable != "" && !strings.Contains(variable, ".")
}

// validVariable matches the names that Flux accepts. It refuses the whole Kustomization
// for any other name.
var validVariable = regexp.MustCompile(`^[_[:alpha:]][_[:alpha:][:digit:]]*$`)

func checkNamesAndPaths(r *report) {
	r.checkVariableNames()
	r.checkPathsOfValues()
}

func (r *report) checkVariableNames() {
	for _, o := range r.byKind[kustomizationKind] {
		for _, key := range o.annotationKeys() {
			if of, ok := kindOfAnnotation(key); ok && of == kustomizationKind {
				r.checkVariableName(annotationAt(o, key), key)
			}
		}
	}
}

func (r *report) checkVariableName(where at, key string) {
	switch variable, ok := variableOf(key); {
	case !ok:
		r.find(where, fmt.Sprintf("the annotation %s names no variable, and has no effect", key),
			"write "+substituteForm+", with a name without dots")
	case !validVariable.MatchString(variable):
		r.find(where, fmt.Sprintf("Flux does not accept %q as the name of a variable", variable),
			"use letters, digits and underscores, and do not begin with a digit")
	}
}

// checkVariableUse looks for the variables of Rollouts in the files below the paths of
// Kustomizations. Files that are not there, such as those of an artifact, say nothing.
func checkVariableUse(r *report) {
	for _, o := range r.byKind[kustomizationKind] {
		variables := o.assignments()
		if len(variables) == 0 {
			continue
		}
		files, reason := r.appliedFiles(o)
		if reason != "" {
			r.skip(at{o, []string{"spec", "path"}}, reason)
			continue
		}
		r.checkUses(o, variables, files)
	}
}

func (r *report) checkUses(k *object, variables []assignment, files map[string]bool) {
	uses := r.usesBelow(files)
	for _, a := range variables {
		variable := a.variable()
		if !r.usedIn(files, variable) {
			r.find(annotationAt(k, a.key),
				fmt.Sprintf("no manifest below %s uses ${%s}", k.text("spec", "path"), variable),
				fmt.Sprintf("write ${%s:=1.0.0} where the version belongs, or remove the annotation", variable))
		}
		if k.has(a.path...) {
			continue // Git has a first value
		}
		for _, each := range uses[variable] {
			r.checkDefault(k, a, each)
		}
	}
}

// usedIn reports whether the text of a file uses a variable, in whatever place.
func (r *report) usedIn(files map[string]bool, variable string) bool {
	for _, file := range r.texts {
		if files[file.Name] && r.variablesOf(file)[variable] {
			return true
		}
	}
	return false
}

// variablesOf returns the variables in a file. It looks at each file once.
func (s *set) variablesOf(file File) map[string]bool {
	if s.variables[file.Name] == nil {
		all := map[string]bool{}
		for _, u := range usesIn(string(file.Content)) {
			all[u.name] = true
		}
		s.variables[file.Name] = all
	}
	return s.variables[file.Name]
}

// placedUse is a use of a variable in a field.
type placedUse struct {
	use
	at
}

// usesBelow returns the uses of variables in the objects of files, by their names.
func (r *report) usesBelow(files map[string]bool) map[string][]placedUse {
	all := map[string][]placedUse{}
	for _, o := range r.all {
		if !files[o.file] {
			continue
		}
		eachScalar(o.node, nil, func(node *yaml.Node, path []string) {
			for _, u := range usesIn(node.Value) {
				all[u.name] = append(all[u.name], placedUse{u, at{o, path}})
			}
		})
	}
	return all
}

// variable returns the variable that an annotation of a Kustomization assigns.
func (a assignment) variable() string { return a.path[len(a.path)-1] }

// checkDefault finds a use of a variable that has no value before the first promotion.
func (r *report) checkDefault(k *object, a assignment, u placedUse) {
	switch {
	case !u.hasDefault && len(k.items("spec", "postBuild", "substituteFrom")) > 0:
		r.skip(u.at, fmt.Sprintf("${%s} may have a value from spec.postBuild.substituteFrom of %s", a.variable(), k))
	case !u.hasDefault:
		r.find(u.at, fmt.Sprintf("${%s} has no value until Rollout %s has promoted a release", a.variable(), a.rollout),
			fmt.Sprintf("write a default: ${%s:=1.0.0}", a.variable()))
	case !substitutes(k):
		r.find(u.at, fmt.Sprintf("the default of ${%s} has no effect before the first promotion: %s has no other variable, "+
			"so that Flux substitutes nothing", a.variable(), k),
			"set another variable in spec.postBuild.substitute, or spec.postBuild.substituteStrategy: Always (Flux 2.9)")
	}
}

// substitutes reports whether Flux substitutes variables in what a Kustomization applies
// before a Rollout has written one.
func substitutes(k *object) bool {
	return len(k.fields("spec", "postBuild", "substitute")) > 0 || len(k.items("spec", "postBuild", "substituteFrom")) > 0 ||
		k.text("spec", "postBuild", "substituteStrategy") == "Always"
}
