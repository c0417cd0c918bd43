// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"slices"
	"strings"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// misannotated returns why the annotations of a HelmRelease cannot be followed, if they
// cannot.
func (t Target) misannotated() observation {
	if many := tooMany(t.Kind(), t.HelmRelease); !many.isNothing() {
		return many
	}
	if twice := t.annotatedTwice(); !twice.isNothing() {
		return twice
	}
	for _, path := range t.Paths {
		if !isPath(path) {
			return conflict(v1alpha1.TargetInvalidField, "%q is not the path of a value, which has keys with a dot between each two: rename the annotation %s",
				path, t.annotationOf(path))
		}
	}
	return t.obstructed()
}

// obstructed returns why a write would replace values that belong to others, or would have
// no effect, if it would. Nothing of the HelmRelease is written then, so that the
// versions in it still belong together.
func (t Target) obstructed() observation {
	if len(t.Paths) == 0 {
		return observation{}
	}
	if outer, inner := t.nested(); outer != "" {
		return conflict(v1alpha1.TargetInvalidField,
			"the annotations %s and %s cannot both be followed, because one of the values contains the other: remove one of them",
			t.annotationOf(outer), t.annotationOf(inner))
	}
	if target, path := t.referenced(); target != "" {
		return conflict(v1alpha1.TargetOutranked, "spec.valuesFrom with targetPath %s outranks spec.values.%s in Flux: remove it", target, path)
	}
	values := valuesOf(t.HelmRelease)
	for _, path := range t.Paths {
		if obstacle := t.obstacleTo(values, path); !obstacle.isNothing() && isPath(path) {
			return obstacle
		}
	}
	return observation{}
}

// nested returns two annotated paths of which one contains the other and at least one
// belongs to the Rollout. They are empty if there are none.
func (t Target) nested() (outer, inner string) {
	all := pathsOfAll(t.HelmRelease)
	for _, inner := range all {
		for i, c := range inner {
			if c != '.' || !sortedHas(all, inner[:i]) {
				continue
			}
			if sortedHas(t.Paths, inner[:i]) || sortedHas(t.Paths, inner) {
				return inner[:i], inner
			}
		}
	}
	return "", ""
}

func sortedHas(all []string, s string) bool {
	_, found := slices.BinarySearch(all, s)
	return found
}

// obstacleTo returns what prevents a value from being written at a path, if something does.
func (t Target) obstacleTo(values any, path string) observation {
	keys := strings.Split(path, ".")
	value, depth := valueAt(values, keys)
	kind, nests := kindOf(value)
	where := strings.Join(append([]string{"spec.values"}, keys[:depth]...), ".")
	switch {
	case depth < len(keys):
		return conflict(v1alpha1.TargetInvalidField, "%s is %s, and a write would replace it with a map: make it a map, or rename the annotation %s",
			where, kind, t.annotationOf(path))
	case nests:
		return conflict(v1alpha1.TargetInvalidField, "%s is %s, and a write would replace all of it: rename the annotation %s, so that it names a single value",
			where, kind, t.annotationOf(path))
	}
	return observation{}
}

// kindOf returns what a value is, in words, and whether other values are in it.
func kindOf(value any) (kind string, nests bool) {
	switch value.(type) {
	case map[string]any:
		return "a map", true
	case []any:
		return "a list", true
	case string:
		return "a string", false
	case float64:
		return "a number", false
	}
	return "a boolean", false
}

// referenced returns the target path of a value from a ConfigMap or Secret that takes
// precedence over one of the Rollout's values, and the path of that value. They are empty
// if there is none.
func (t Target) referenced() (target, path string) {
	for _, reference := range t.HelmRelease.Spec.ValuesFrom {
		if path := outranked(reference.TargetPath, t.Paths); path != "" {
			return reference.TargetPath, path
		}
	}
	return "", ""
}

// outranked returns which of the sorted paths leads to the same value as a target path, or
// around it, or into it; empty if none does. Flux documents that a value with a target
// path replaces those in spec.values, while all other references do not. A dot after a
// backslash is a part of a key, and no path of ours leads to such a key or into a list.
func outranked(target string, paths []string) string {
	if target == "" {
		return ""
	}
	target, _, _ = strings.Cut(strings.ReplaceAll(target, `\.`, `\`), "[")
	for i, c := range target + "." {
		if c == '.' && sortedHas(paths, target[:i]) {
			return target[:i]
		}
	}
	if i, _ := slices.BinarySearch(paths, target+"."); i < len(paths) && strings.HasPrefix(paths[i], target+".") {
		return paths[i]
	}
	return ""
}
