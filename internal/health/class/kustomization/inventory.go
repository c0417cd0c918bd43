// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	"cmp"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/inventory"
)

// group contains the objects of an inventory that one request can list.
type group struct {
	kind      schema.GroupVersionKind
	namespace string
	names     []string
}

func objectsOf(groups []group) int {
	n := 0
	for _, g := range groups {
		n += len(g.names)
	}
	return n
}

// groups sorts, by their group, the objects that have a health of their own. So messages do not
// depend on the order of the inventory.
func groups(applied []entry) ([]group, error) {
	type place struct {
		kind      schema.GroupVersionKind
		namespace string
	}
	names := map[place][]string{}
	var errs []error
	for _, entry := range applied {
		id, err := inventory.Parse(entry.id)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if hasHealth(id.Kind) {
			at := place{id.Kind.WithVersion(entry.version), id.Namespace}
			names[at] = append(names[at], id.Name)
		}
	}
	all := make([]group, 0, len(names))
	for at, some := range names {
		slices.Sort(some)
		all = append(all, group{at.kind, at.namespace, slices.Compact(some)})
	}
	slices.SortFunc(all, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.kind.String(), b.kind.String()), cmp.Compare(a.namespace, b.namespace))
	})
	return all, errors.Join(errs...)
}

// hasHealth reports whether objects of a kind count for a HealthCheck. The kinds of this
// API do not: a Rollout that waits for the check would wait for itself, and whether
// releases may be promoted is independent of whether the deployed release works.
func hasHealth(gk schema.GroupKind) bool {
	return gk.Group != v1alpha1.GroupVersion.Group && inventory.HasHealth(gk)
}
