// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	corev1 "k8s.io/api/core/v1"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
)

// tell sends notes as events about a coordination.
func (r *Reconciler) tell(c *coordinationv1.DeploymentCoordination, notes ...deployments.Note) {
	for _, note := range notes {
		kind := corev1.EventTypeNormal
		if note.Warning {
			kind = corev1.EventTypeWarning
		}
		r.Events.Event(c, kind, note.Reason, note.Message)
	}
}

// tellAll sends one note about several coordinations; those that are gone hear
// nothing.
func (r *Reconciler) tellAll(seen world, coordinations []string, note deployments.Note) {
	for _, name := range coordinations {
		if c := seen.coordinations[name]; c != nil && note.Reason != "" {
			r.tell(c, note)
		}
	}
}
