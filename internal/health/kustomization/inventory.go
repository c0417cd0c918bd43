// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// objectID is the parsed id of an inventory entry.
type objectID struct {
	namespace, name string
	kind            schema.GroupKind
}

// parseID parses namespace_name_group_kind, the form that Flux takes over from cli-utils.
// It does not use the parser of cli-utils, which would add all dependencies of kubectl.
// The name is the part that the other three leave: a colon in it is written as two
// underscores.
func parseID(id string) (objectID, error) {
	namespace, rest, _ := strings.Cut(id, "_")
	fields := strings.Split(rest, "_")
	last := len(fields) - 1
	if last < 2 || fields[0] == "" || fields[last] == "" {
		return objectID{}, fmt.Errorf("the inventory entry %q is malformed", id)
	}
	return objectID{
		namespace: namespace,
		name:      strings.ReplaceAll(strings.Join(fields[:last-1], "_"), "__", ":"),
		kind:      schema.GroupKind{Group: fields[last-1], Kind: fields[last]},
	}, nil
}

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
func groups(inventory *kustomizev1.ResourceInventory) ([]group, error) {
	type place struct {
		kind      schema.GroupVersionKind
		namespace string
	}
	names := map[place][]string{}
	var errs []error
	for _, entry := range inventory.Entries {
		id, err := parseID(entry.ID)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if hasHealth(id.kind) {
			at := place{id.kind.WithVersion(entry.Version), id.namespace}
			names[at] = append(names[at], id.name)
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
