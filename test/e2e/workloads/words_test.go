// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// key returns the name of an object in a journal.
func key(o client.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// inOrder joins names in alphabetical order.
func inOrder(names []string) string {
	slices.Sort(names)
	return strings.Join(names, " and ")
}
