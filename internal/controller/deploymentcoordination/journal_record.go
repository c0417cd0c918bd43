// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// record stores the journals that say anything new, each under an optimistic
// lock: of two passes, or two controllers, that decided on the same state only
// one is written, and the other looks again. The first that cannot be stored
// ends it, and nothing may be acted on then. It returns whether any was stored.
func (r *Reconciler) record(ctx context.Context, seen world, plan deployments.Plan) (stored bool, err error) {
	for _, journal := range plan.Journals {
		c := seen.coordinations[journal.Coordination]
		news, err := r.store(ctx, c, journal.Status)
		if err != nil {
			r.tellUnrecorded(ctx, c, plan, err)
			return stored, fmt.Errorf("write the status of DeploymentCoordination %s/%s: %w", seen.namespace, c.Name, err)
		}
		stored = stored || news
		r.tell(ctx, c, journal.Notes...)
	}
	return stored, nil
}

func (r *Reconciler) store(ctx context.Context, c *coordinationv1.DeploymentCoordination, next coordinationv1.DeploymentCoordinationStatus) (news bool, err error) {
	if equality.Semantic.DeepEqual(c.Status, next) {
		return false, nil
	}
	wanted := *c
	wanted.Status = next
	stored, err := write.PatchStatus(ctx, r.Client, &wanted, client.MergeFromWithOptions(c, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return false, err
	}
	r.writes.Wrote(stored)
	return true, nil
}

// tellUnrecorded tells of a journal that could not be written. That another was
// quicker is no news.
func (r *Reconciler) tellUnrecorded(ctx context.Context, c *coordinationv1.DeploymentCoordination, plan deployments.Plan, err error) {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return
	}
	note := deployments.Note{
		Reason: coordinationv1.StatusUpdateFailedEvent, Warning: true, Message: fmt.Sprintf("the status cannot be written: %v", err),
	}
	if plan.Begins {
		note.Reason = coordinationv1.ActivationFailedEvent
		note.Message = fmt.Sprintf("no turn is given, since it cannot be written down: %v", err)
	}
	r.tell(ctx, c, note)
}
