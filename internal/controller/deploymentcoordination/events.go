// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
)

// emit emits notes as events about a coordination.
func (r *Reconciler) emit(ctx context.Context, c *coordinationv1.DeploymentCoordination, notes ...deployments.Note) {
	ctx = announce.About(ctx, coordinationv1.DeploymentCoordinationKind, c)
	for _, note := range notes {
		kind := corev1.EventTypeNormal
		if note.Warning {
			kind = corev1.EventTypeWarning
		}
		announce.Event(ctx, r.Events, c, kind, note.Reason, note.Message)
	}
}

// emitAll emits one note about several coordinations. It skips deleted coordinations.
func (r *Reconciler) emitAll(ctx context.Context, seen snapshot, coordinations []string, note deployments.Note) {
	for _, name := range coordinations {
		if c := seen.coordinations[name]; c != nil && note.Reason != "" {
			r.emit(ctx, c, note)
		}
	}
}
