// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"encoding/json"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// longestKept is how many bytes of a text a cache keeps. No version is longer.
const longestKept = 129

// KeepWrittenValues removes all values of a HelmRelease except those that Rollouts write,
// and all references except the target paths that take precedence over these. Of a map or
// a list in the place of a value, it keeps only that there is one. The number and size of
// everything else is not limited.
func KeepWrittenValues(h *helmv2.HelmRelease) {
	var kept any
	values, paths := valuesOf(h), pathsOfAll(h)
	h.Spec.ValuesFrom = keptReferences(h.Spec.ValuesFrom, paths)
	for _, path := range paths {
		keys := strings.Split(path, ".")
		if value, depth := valueAt(values, keys); value != nil {
			kept = withValue(kept, keys[:depth], value)
		}
	}
	h.Spec.Values = nil
	if kept == nil {
		return
	}
	if raw, err := json.Marshal(kept); err == nil { // it was decoded from JSON
		h.Spec.Values = &apiextensionsv1.JSON{Raw: raw}
	}
}

// WrittenVariables returns the variables of a Kustomization that Rollouts write. The
// number and size of all other variables is not limited, and they may be secret.
func WrittenVariables(k *kustomizev1.Kustomization) map[string]string {
	var kept map[string]string
	for key := range k.Annotations {
		variable, ok := variableOf(key)
		value, set := substitutes(k)[variable]
		if !ok || !set {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[variable] = value
	}
	return kept
}

// withValue returns nested maps with the outline of one more value.
func withValue(all any, keys []string, value any) any {
	if len(keys) == 0 {
		return outline(value)
	}
	inner, ok := all.(map[string]any)
	if !ok {
		inner = map[string]any{}
	}
	inner[keys[0]] = withValue(inner[keys[0]], keys[1:], value)
	return inner
}

// outline returns a value without what is in it.
func outline(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return map[string]any{}
	case []any:
		return []any{}
	case string:
		return strings.ToValidUTF8(value[:min(len(value), longestKept)], "")
	}
	return value
}

// keptReferences returns the target paths that take precedence over a written value, each
// once.
func keptReferences(all []helmv2.ValuesReference, paths []string) []helmv2.ValuesReference {
	var kept []helmv2.ValuesReference
	known := map[string]bool{}
	for _, reference := range all {
		if target := reference.TargetPath; !known[target] && outranked(target, paths) != "" {
			kept, known[target] = append(kept, helmv2.ValuesReference{TargetPath: target}), true
		}
	}
	return kept
}
