// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
)

// FieldManager owns what the program writes. Flux removes the fields of managers whose
// name begins with "kubectl" from objects that it applies (fluxcd/pkg ssa), so the name of
// the file must not be the name of the manager.
const FieldManager = "rollouts-cli"

// KindOf returns the kind of an object that the program changes.
func KindOf(object client.Object) string {
	switch object.(type) {
	case *v1alpha1.RolloutGate:
		return "RolloutGate"
	case *v1alpha1.Rollout:
		return "Rollout"
	case *v1alpha1.ReleaseQuarantine:
		return v1alpha1.ReleaseQuarantineKind
	case *v1alpha1.RolloutSchedule, *v1alpha1.ClusterRolloutSchedule:
		return gather.ScheduleOf(object).Kind
	}
	return fmt.Sprintf("%T", object)
}
