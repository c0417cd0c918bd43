// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/cli/kinds"
)

// FieldManager owns what the program writes. Flux removes the fields of managers whose
// name begins with "kubectl" from objects that it applies (fluxcd/pkg ssa), so the name of
// the file must not be the name of the manager.
const FieldManager = "rollouts-cli"

// KindOf returns the kind of an object that the program changes.
func KindOf(object client.Object) string {
	if kind, known := kinds.OfObject(object); known {
		return kind.Kind
	}
	return fmt.Sprintf("%T", object)
}
