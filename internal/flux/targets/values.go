// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// validPath matches the paths that can be written. Kubernetes accepts no other characters
// in the key of an annotation, but it accepts two dots in a row.
var validPath = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// isPath reports whether a path leads to a value: it consists of keys of letters, digits,
// - and _, joined by dots.
func isPath(path string) bool { return validPath.MatchString(path) }

// pathOf returns the path in the key of an annotation that assigns a value to a Rollout, for
// its tag or its digest, and whether the key is one. A path that is not valid still belongs
// to the Rollout, which reports it.
func pathOf(key string) (string, bool) {
	if path, ok := strings.CutPrefix(key, v1alpha1.DigestValuesAnnotationPrefix); ok {
		return path, true
	}
	rest, ok := strings.CutPrefix(key, v1alpha1.ValuesAnnotationPrefix)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, v1alpha1.ValuesAnnotationSuffix)
}

// PathsOf returns the paths of the values that a Rollout writes into a HelmRelease,
// sorted.
func PathsOf(release client.Object, rollout string) []string {
	return annotated(release, rollout, pathOf)
}

// pathsOfAll returns the valid paths that any Rollout writes, sorted.
func pathsOfAll(release client.Object) []string {
	var paths []string
	for key, name := range release.GetAnnotations() {
		if path, ok := pathOf(key); ok && name != "" && isPath(path) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// valuePath returns the path of a value in the object.
func valuePath(path string) fieldpath.Path {
	full := fieldpath.MakePathOrDie("spec", "values")
	for _, key := range strings.Split(path, ".") {
		full = append(full, fieldpath.MakePathOrDie(key)...)
	}
	return full
}

// annotatedValues returns the values that annotations assign to any Rollout, and the maps
// around them. It is empty without such an annotation.
func annotatedValues(release client.Object) *fieldpath.Set {
	annotated := fieldpath.NewSet()
	for _, path := range pathsOfAll(release) {
		full := valuePath(path)
		for depth := 2; depth <= len(full); depth++ {
			annotated.Insert(full[:depth])
		}
	}
	return annotated
}

// valuesOf decodes spec.values. It is nil if it is not set. The API server accepts any
// JSON there, and not only a map.
func valuesOf(h *helmv2.HelmRelease) any {
	if h.Spec.Values == nil {
		return nil
	}
	var values any
	if json.Unmarshal(h.Spec.Values.Raw, &values) != nil {
		return string(h.Spec.Values.Raw) // cannot come from an API server; no map in any case
	}
	return values
}

// valueAt follows keys through nested maps, and returns the value there; nil if there is
// none. If something on the way is not a map, it returns that, and how many keys lead to
// it instead of all.
func valueAt(values any, keys []string) (value any, depth int) {
	for depth, key := range keys {
		switch inner := values.(type) {
		case nil:
			return nil, len(keys)
		case map[string]any:
			values = inner[key]
		default:
			return values, depth
		}
	}
	return values, len(keys)
}

// valueFields returns the values that belong to the Rollout. A value that is not a text
// is no version: Helm may print a number differently from how it was written.
func (t Target) valueFields() []field {
	if len(t.Paths) == 0 {
		return nil
	}
	var all []field
	values := valuesOf(t.HelmRelease)
	for _, path := range t.Paths {
		if isPath(path) {
			value, _ := valueAt(values, strings.Split(path, "."))
			text, set := value.(string)
			all = append(all, field{name: path, value: text, set: set, gets: t.partOf(path)})
		}
	}
	return all
}

// valuesPatch returns the part of spec.values that a write sends.
func (t Target) valuesPatch(release Release) map[string]any {
	patch := map[string]any{}
	for _, f := range t.fields() {
		inner, keys := patch, strings.Split(f.name, ".")
		for _, key := range keys[:len(keys)-1] {
			if inner[key] == nil {
				inner[key] = map[string]any{}
			}
			inner = inner[key].(map[string]any)
		}
		inner[keys[len(keys)-1]] = f.wanted(release)
	}
	return patch
}
