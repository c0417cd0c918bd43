// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/target"
)

// writeRevision says of a set that its update is complete, on condition that it is
// as it was read. The StatefulSet controller says so itself only under the
// strategy RollingUpdate, and alerts compare the two revisions. It is a full
// update because the documented rights have no patch.
func (r *Reconciler) writeRevision(ctx context.Context, set *appsv1.StatefulSet) error {
	set = set.DeepCopy()
	set.Status.CurrentRevision = set.Status.UpdateRevision
	err := r.Client.Status().Update(ctx, set, client.FieldOwner(target.FieldManager))
	if err == nil {
		r.writes.Wrote(set)
	}
	return err
}
