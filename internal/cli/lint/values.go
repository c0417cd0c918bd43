// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

var valuesPath = []string{"spec", "values"}

// valuePath returns the field of a HelmRelease that has the value of a path.
func valuePath(path string) []string {
	return append(valuesPath[:len(valuesPath):len(valuesPath)], strings.Split(path, ".")...)
}

// pathOfValue returns the path in the key of an annotation for a version or a digest, and
// whether the controller reads the key as one. The path may be invalid.
func pathOfValue(key string) (string, bool) {
	if digest, ok := strings.CutPrefix(key, v1alpha1.DigestValuesAnnotationPrefix); ok {
		return digest, true
	}
	rest, isValues := strings.CutPrefix(key, v1alpha1.ValuesAnnotationPrefix)
	path, ends := strings.CutSuffix(rest, v1alpha1.ValuesAnnotationSuffix)
	return path, isValues && ends
}

// validPath matches the keys of maps, with a dot between them. No item of a list has one:
// a merge patch writes lists only as a whole.
var validPath = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// longestPath is how many characters a path may have: Kubernetes allows 63 characters
// after the slash of an annotation's key, and the rest of the key needs twelve.
const longestPath = 51

func isPathOfValue(path string) bool { return len(path) <= longestPath && validPath.MatchString(path) }

func (r *report) checkPathsOfValues() {
	for _, o := range r.byKind[helmReleaseKind] {
		for _, key := range o.annotationKeys() {
			if of, ok := kindOfAnnotation(key); ok && of == helmReleaseKind {
				r.checkPathOfValue(annotationAt(o, key), key)
			}
		}
	}
}

func (r *report) checkPathOfValue(where at, key string) {
	switch path, ok := pathOfValue(key); {
	case !ok:
		r.find(where, fmt.Sprintf("the annotation %s names no path of a value, and has no effect", key),
			"write "+valuesForm+", such as "+v1alpha1.ValuesAnnotationPrefix+"image.tag"+v1alpha1.ValuesAnnotationSuffix)
	case !validPath.MatchString(path):
		r.find(where, fmt.Sprintf("%q is no path of a value", path),
			"write the keys of maps, with a dot between them: a key has letters, digits, - and _, and an item of a list has none")
	case len(path) > longestPath:
		r.find(where, fmt.Sprintf("the path in the annotation has %d characters, and Kubernetes accepts at most %d there", len(path), longestPath),
			"use a variable of the Kustomization that applies the HelmRelease")
	}
}

// obstacle is why a value cannot be written without the loss of another one.
type obstacle struct {
	path []string
	// is what is there.
	is string
}

// obstacleTo returns what is in the place of a value, or of a map around it. It is nil if
// the value can be written: in the place of none, of null, or of one value.
func (o *object) obstacleTo(path []string) *obstacle {
	for n := len(valuesPath); n <= len(path); n++ {
		last := n == len(path)
		switch o.value(path[:n]...).(type) {
		case nil:
			return nil
		case []any:
			return &obstacle{path[:n], "a list"}
		case map[string]any:
			if last {
				return &obstacle{path[:n], "a map"}
			}
		default:
			if last || o.isUnknown(path[:n]...) {
				return nil // Flux may substitute a map
			}
			return &obstacle{path[:n], "a single value"}
		}
	}
	return nil
}

func (r *report) checkPlacesOfValues() {
	for _, o := range r.byKind[helmReleaseKind] {
		assigned := map[string]bool{}
		for _, a := range o.assignments() {
			assigned[fieldName(a.path)] = a.path != nil
		}
		for _, a := range o.assignments() {
			if a.path != nil {
				r.checkPlaceOfValue(o, a)
				r.checkPathsAbove(o, a, assigned)
			}
		}
	}
}

func (r *report) checkPlaceOfValue(o *object, a assignment) {
	found := o.obstacleTo(a.path)
	switch {
	case found == nil:
	case len(found.path) == len(a.path):
		r.find(at{o, found.path}, fmt.Sprintf("%s is %s, and Rollout %s would write its version in the place of it", fieldName(found.path), found.is, a.rollout),
			"correct the path in the annotation "+a.key)
	default:
		r.find(at{o, found.path}, fmt.Sprintf("%s is %s, and Rollout %s cannot write %s in it", fieldName(found.path), found.is, a.rollout, fieldName(a.path)),
			"make it a map, or correct the path in the annotation "+a.key)
	}
}

// checkPathsAbove finds an annotation whose path leads to a map around the value of
// another one.
func (r *report) checkPathsAbove(o *object, a assignment, assigned map[string]bool) {
	for n := len(valuesPath) + 1; n < len(a.path); n++ {
		if above := fieldName(a.path[:n]); assigned[above] {
			r.find(annotationAt(o, a.key), fmt.Sprintf("an annotation assigns %s, and another one %s, which is inside it", above, fieldName(a.path)),
				"remove one of the two annotations: a field is either a version or a map")
		}
	}
}

// fieldName returns a path as messages show it.
func fieldName(path []string) string { return strings.Join(path, ".") }

// checkTargetPaths finds references to values that Flux writes over spec.values.
func (r *report) checkTargetPaths() {
	for _, o := range r.byKind[helmReleaseKind] {
		for _, a := range o.assignments() {
			if a.path != nil {
				r.checkTargetPathsAt(o, a)
			}
		}
	}
}

func (r *report) checkTargetPathsAt(o *object, a assignment) {
	for i, each := range o.items("spec", "valuesFrom") {
		reference, _ := each.(map[string]any)
		target, _ := reference["targetPath"].(string)
		if isOnPath(target, fieldName(a.path[len(valuesPath):])) {
			r.find(at{o, []string{"spec", "valuesFrom", strconv.Itoa(i), "targetPath"}},
				fmt.Sprintf("spec.valuesFrom with the targetPath %s takes precedence over %s, which Rollout %s writes: its releases have no effect",
					target, fieldName(a.path), a.rollout),
				"remove this item of spec.valuesFrom")
		}
	}
}

// isOnPath reports whether the values at two paths replace each other: the paths are equal,
// or one leads to a map or list around the other value.
func isOnPath(target, path string) bool {
	target, _, _ = strings.Cut(target, "[")
	return target != "" && (target == path || strings.HasPrefix(target, path+".") || strings.HasPrefix(path, target+"."))
}
