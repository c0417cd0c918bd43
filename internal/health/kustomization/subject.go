// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Subject is what a HealthCheck is about: an object of Flux, and everything that it has
// applied.
type Subject struct {
	// Kind is the kind of the object of Flux.
	Kind string
	types.NamespacedName
}

// Of returns the subject that is a Kustomization.
func Of(k types.NamespacedName) Subject {
	return Subject{Kind: kustomizev1.KustomizationKind, NamespacedName: k}
}

// String returns the name in messages, such as "Kustomization shop/web".
func (s Subject) String() string { return objectName(s.Kind, s.Namespace, s.Name) }
