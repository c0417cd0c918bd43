// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// writeRevision sets the update of a set to complete, only if the set has not changed
// since it was read. The StatefulSet controller itself does so only with the strategy
// RollingUpdate, and alerts compare the two revisions. It is a full update because the
// documented permissions do not include patch.
func (r *Reconciler) writeRevision(ctx context.Context, set *appsv1.StatefulSet) error {
	wanted := *set
	wanted.Status.CurrentRevision = set.Status.UpdateRevision
	written, err := write.UpdateStatus(ctx, r.Client, &wanted)
	if err == nil {
		r.writes.Wrote(written)
	}
	return err
}
