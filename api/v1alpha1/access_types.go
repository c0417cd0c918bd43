// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "k8s.io/apimachinery/pkg/labels"

// AccessFrom defines which other namespaces may refer to an object. It has the form and
// the meaning of spec.accessFrom of Flux's sources.
type AccessFrom struct {
	// namespaceSelectors select namespaces by their labels. A namespace may refer to the
	// object if at least one selector selects it.
	// +kubebuilder:validation:MaxItems=32
	// +required
	NamespaceSelectors []NamespaceSelector `json:"namespaceSelectors"`
}

// NamespaceSelector selects namespaces by their labels.
type NamespaceSelector struct {
	// matchLabels are the labels that a namespace must have. If there are none, every
	// namespace is selected.
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
}

// Admits reports whether a namespace with these labels may refer to the object. A nil
// AccessFrom admits no namespace.
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
