// SPDX-License-Identifier: Apache-2.0

// Package inventory reads what Flux records of the objects that it has applied: the
// entries in status.inventory of a Kustomization or a HelmRelease.
package inventory

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is an object that an inventory names.
type Object struct {
	// Namespace is empty for a cluster-wide object.
	Namespace string
	// Name of the object.
	Name string
	// Kind of the object. The version is not part of the id.
	Kind schema.GroupKind
}

// Parse parses the id of an entry: namespace_name_group_kind, the form that Flux takes
// over from cli-utils. It does not use the parser of cli-utils, which would add all
// dependencies of kubectl. The name is the part that the other three leave: a colon in it
// is written as two underscores.
func Parse(id string) (Object, error) {
	namespace, rest, _ := strings.Cut(id, "_")
	fields := strings.Split(rest, "_")
	last := len(fields) - 1
	if last < 2 || fields[0] == "" || fields[last] == "" {
		return Object{}, fmt.Errorf("the inventory entry %q is malformed", id)
	}
	return Object{
		Namespace: namespace,
		Name:      strings.ReplaceAll(strings.Join(fields[:last-1], "_"), "__", ":"),
		Kind:      schema.GroupKind{Group: fields[last-1], Kind: fields[last]},
	}, nil
}
