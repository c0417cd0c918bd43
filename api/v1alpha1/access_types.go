// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "k8s.io/apimachinery/pkg/labels"

// AccessFrom says which other namespaces may refer to an object. It has the form and
// the meaning of spec.accessFrom of Flux's sources.
type AccessFrom struct {
	// namespaceSelectors select namespaces by their labels. Each namespace that one
	// of them selects may refer to the object.
	// +kubebuilder:validation:MaxItems=32
	// +required
	NamespaceSelectors []NamespaceSelector `json:"namespaceSelectors"`
}

// NamespaceSelector selects namespaces.
type NamespaceSelector struct {
	// matchLabels are labels that a namespace must have. Without any, every namespace
	// is selected.
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
}

// Admits reports whether a namespace with these labels may refer to the object. Nil
// admits none.
func (a *AccessFrom) Admits(namespace map[string]string) bool {
	if a == nil {
		return false
	}
	for _, s := range a.NamespaceSelectors {
		if labels.SelectorFromSet(s.MatchLabels).Matches(labels.Set(namespace)) {
			return true
		}
	}
	return false
}
