// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"fmt"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/flux/inventory"
)

// applied is what a Kustomization or a HelmRelease has applied.
type applied struct {
	// by is the node of the Flux object.
	by *Node
	// labels are those that Flux gives to what it applies for this object.
	labels client.MatchingLabels
	// objects are what its inventory names, sorted, each once.
	objects []Object
	// elsewhere is true if they are in another cluster.
	elsewhere bool
	// unlisted is the namespace in which to look for labelled objects, because there is no
	// inventory; empty if there is one.
	unlisted string
	// absence says what becomes of an object that does not exist.
	absence string
	// problems are entries of the inventory that cannot be parsed.
	problems []string
}

// appliedOf returns what a Kustomization or a HelmRelease has applied.
func appliedOf(by *Node, o client.Object) applied {
	var a applied
	if h, ok := o.(*helmv2.HelmRelease); ok {
		a = ofHelmRelease(by, h)
	} else {
		a = ofKustomization(by, o.(*kustomizev1.Kustomization))
	}
	a.absence = absenceBelow(o)
	return a
}

// ofKustomization returns what a Kustomization has applied.
func ofKustomization(by *Node, k *kustomizev1.Kustomization) applied {
	a := applied{by: by, labels: ownedBy(kustomizev1.GroupVersion.Group, k), elsewhere: k.Spec.KubeConfig != nil}
	if k.Status.Inventory != nil {
		for _, entry := range k.Status.Inventory.Entries {
			a.add(entry.ID, entry.Version)
		}
	}
	return a.sorted()
}

// ofHelmRelease returns what a HelmRelease has applied. Older versions of Flux record no
// inventory; what Helm has installed is then found by the labels of helm-controller.
func ofHelmRelease(by *Node, h *helmv2.HelmRelease) applied {
	a := applied{by: by, labels: ownedBy(helmv2.GroupVersion.Group, h), elsewhere: h.Spec.KubeConfig != nil}
	switch {
	case h.Status.Inventory != nil:
		for _, entry := range h.Status.Inventory.Entries {
			a.add(entry.ID, entry.Version)
		}
	case len(h.Status.History) > 0:
		a.unlisted = h.GetReleaseNamespace()
	}
	return a.sorted()
}

// ownedBy returns the labels with which Flux records who applied an object.
func ownedBy(group string, o client.Object) client.MatchingLabels {
	return client.MatchingLabels{group + "/name": o.GetName(), group + "/namespace": o.GetNamespace()}
}

func (a *applied) add(id, version string) {
	parsed, err := inventory.Parse(id)
	if err != nil {
		a.problems = append(a.problems, err.Error())
		return
	}
	a.objects = append(a.objects, Object{
		Group: parsed.Kind.Group, Version: version, Kind: parsed.Kind.Kind,
		Namespace: parsed.Namespace, Name: parsed.Name, Elsewhere: a.elsewhere,
	})
}

// sorted makes the order of the tree independent of the one of the inventory.
func (a applied) sorted() applied {
	slices.SortFunc(a.objects, func(x, y Object) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Group, y.Group),
			cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	a.objects = slices.Compact(a.objects)
	return a
}

// malformed returns a node for the entries that cannot be parsed; nil if there are none.
func (a applied) malformed() *Node {
	if len(a.problems) == 0 {
		return nil
	}
	text := a.problems[0]
	if more := len(a.problems) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return missing("inventory", text)
}
