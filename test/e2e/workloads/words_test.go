// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// key is how a journal names an object.
func key(o client.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// inOrder names some in the order of the alphabet.
func inOrder(names []string) string {
	slices.Sort(names)
	return strings.Join(names, " and ")
}
