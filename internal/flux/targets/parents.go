// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Parent is an object whose controller applies a target, and overwrites fields of it.
type Parent struct {
	// Kind and Name of the object. The name is "namespace/name", or that of an Argo CD
	// Application alone. Both are empty if no parent is known.
	Kind, Name string
	// Remedy says how to make it leave a field alone.
	Remedy string
}

// applier is a field manager, and how to find the parent for which it applies an object.
type applier struct {
	manager, kind string
	// name returns the name of the parent of an object; empty if it has none.
	name   func(metav1.Object) string
	remedy string
}

// trackingID and instanceLabel are of Argo CD.
const (
	trackingID    = "argocd.argoproj.io/tracking-id"
	instanceLabel = "app.kubernetes.io/instance"
)

// parentLabels returns the labels by which parents are found.
func parentLabels(object metav1.Object) map[string]string {
	kept := map[string]string{}
	for key, value := range object.GetLabels() {
		domain, name, _ := strings.Cut(key, "/")
		isFlux := strings.HasSuffix(domain, ".fluxcd.io") || strings.HasSuffix(domain, "fluxcd.controlplane.io")
		if key == instanceLabel || isFlux && (name == "name" || name == "namespace") {
			kept[key] = value
		}
	}
	return kept
}

var appliers = []applier{
	{
		"kustomize-controller", kustomizev1.KustomizationKind, labelledBy(kustomizev1.GroupVersion.Group),
		"remove it from the manifest that this Kustomization applies, or name it in its spec.ignore",
	},
	{
		"helm-controller", helmv2.HelmReleaseKind, labelledBy(helmv2.GroupVersion.Group),
		"leave it out of the templates of its chart",
	},
	{
		"flux-operator", "ResourceSet", labelledBy("resourceset.fluxcd.controlplane.io"),
		"leave it out of the template of this ResourceSet",
	},
	{
		"flux-operator", "FluxInstance", labelledBy("fluxcd.controlplane.io"),
		"it comes from spec.sync of this FluxInstance; annotate another object with the name of the Rollout",
	},
	{
		"argocd-controller", "Application", trackedBy,
		"remove it from the manifest in Git, or name it in spec.ignoreDifferences with the sync option RespectIgnoreDifferences=true",
	},
}

// parentOf returns for which object one of the managers applies another one.
func parentOf(object metav1.Object, managers []string) Parent {
	for _, a := range appliers {
		if !slices.Contains(managers, a.manager) {
			continue
		}
		if name := a.name(object); name != "" {
			return Parent{Kind: a.kind, Name: name, Remedy: a.remedy}
		}
	}
	return Parent{}
}

// labelledBy returns a function that reads a parent from the labels of Flux and of the Flux
// Operator, which begin with a group.
func labelledBy(group string) func(metav1.Object) string {
	return func(object metav1.Object) string {
		labels := object.GetLabels()
		if labels[group+"/name"] == "" {
			return ""
		}
		return labels[group+"/namespace"] + "/" + labels[group+"/name"]
	}
}

// trackedBy returns the Argo CD Application that applies an object: by its annotation, which
// ends with the object, or by the label that older versions set.
func trackedBy(object metav1.Object) string {
	id := object.GetAnnotations()[trackingID]
	if name, of, _ := strings.Cut(id, ":"); strings.HasSuffix(of, ":"+object.GetNamespace()+"/"+object.GetName()) {
		return truncate.Line(name, truncate.LongestName)
	}
	return object.GetLabels()[instanceLabel]
}
