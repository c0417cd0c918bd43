// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Subject is what a HealthCheck is about: an object of Flux, and everything that it has
// applied.
type Subject struct {
	// Kind is Kustomization or HelmRelease.
	Kind string
	types.NamespacedName
}

// Of returns the subject that is a Kustomization.
func Of(k types.NamespacedName) Subject {
	return Subject{Kind: kustomizev1.KustomizationKind, NamespacedName: k}
}

// OfHelmRelease returns the subject that is a HelmRelease.
func OfHelmRelease(h types.NamespacedName) Subject {
	return Subject{Kind: helmv2.HelmReleaseKind, NamespacedName: h}
}

// String returns the name in messages, such as "Kustomization shop/web".
func (s Subject) String() string { return objectName(s.Kind, s.Namespace, s.Name) }

// Annotation returns the annotation by which a HealthCheck is about the subject.
func (s Subject) Annotation() string {
	if s.Kind == helmv2.HelmReleaseKind {
		return v1alpha1.HelmReleaseAnnotation
	}
	return v1alpha1.KustomizationAnnotation
}

// mapping returns the mapping of the kind.
func (s Subject) mapping() *meta.RESTMapping {
	if s.Kind == helmv2.HelmReleaseKind {
		return helmReleases
	}
	return kustomizations
}

var (
	kustomizations = &meta.RESTMapping{
		Resource:         kustomizev1.GroupVersion.WithResource("kustomizations"),
		GroupVersionKind: kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind),
		Scope:            meta.RESTScopeNamespace,
	}
	helmReleases = &meta.RESTMapping{
		Resource:         helmv2.GroupVersion.WithResource("helmreleases"),
		GroupVersionKind: helmv2.GroupVersion.WithKind(helmv2.HelmReleaseKind),
		Scope:            meta.RESTScopeNamespace,
	}
)

// Labels returns the labels that Flux sets on everything that the subject has applied. The
// one of the name identifies the kind of the subject.
func (s Subject) Labels() labels.Set {
	name, namespace := OwnerLabels(s.Kind)
	return labels.Set{name: s.Name, namespace: s.Namespace}
}

// OwnerLabels returns the keys of the labels in which Flux records the name and the
// namespace of the subject that has applied an object.
func OwnerLabels(kind string) (name, namespace string) {
	group := Subject{Kind: kind}.mapping().GroupVersionKind.Group
	return group + "/name", group + "/namespace"
}
