// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// components are some of a plan's, by their names.
type components map[string]bool

// record stores the journals that say anything new, each under an optimistic
// lock: of two passes, or two controllers, that decided on the same state only
// one is written, and the other looks again. The first that cannot be stored ends
// it for its component, which may not be acted on then. Whether any was stored, the
// components that were not, and what went wrong are returned.
func (r *Reconciler) record(ctx context.Context, seen world, plan deployments.Plan) (stored bool, unstored components, errs []error) {
	unstored = components{}
	for _, journal := range plan.Journals {
		if unstored[journal.Component] {
			continue
		}
		c := seen.coordinations[journal.Coordination]
		news, err := r.store(ctx, c, journal.Status)
		if err != nil {
			unstored[journal.Component] = true
			errs = append(errs, r.unrecorded(ctx, c, plan, err))
			continue
		}
		stored = stored || news
		r.tell(ctx, c, journal.Notes...)
	}
	return stored, unstored, errs
}

// errTooEarly means that a journal could not be stored a moment ago.
var errTooEarly = errors.New("it is too early to try again")

func (r *Reconciler) store(ctx context.Context, c *coordinationv1.DeploymentCoordination, next coordinationv1.DeploymentCoordinationStatus) (news bool, err error) {
	key := client.ObjectKeyFromObject(c).String()
	switch {
	case equality.Semantic.DeepEqual(c.Status, next):
		r.journals.made(key)
		return false, nil
	case r.journals.waits(key, r.Now()):
		return false, errTooEarly
	}
	wanted := *c
	wanted.Status = next
	stored, err := write.PatchStatus(ctx, r.Client, &wanted, client.MergeFromWithOptions(c, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return false, err
	}
	r.journals.made(key)
	r.writes.Wrote(stored)
	return true, nil
}

// unrecorded tells of a journal that could not be stored, and is what the pass says
// of it. It is tried again after a pause, so that the others of the namespace are not
// looked at ever more rarely because of it. That another was quicker is no failure.
func (r *Reconciler) unrecorded(ctx context.Context, c *coordinationv1.DeploymentCoordination, plan deployments.Plan, err error) error {
	switch {
	case errors.Is(err, errTooEarly):
		return nil
	case isOutrun(err):
		return err
	}
	key := client.ObjectKeyFromObject(c)
	r.journals.failed(key.String(), err, r.Now())
	r.tellUnrecorded(ctx, c, plan, err)
	return fmt.Errorf("write the status of DeploymentCoordination %s: %w", key, err)
}

// tellUnrecorded tells of a journal that could not be written.
func (r *Reconciler) tellUnrecorded(ctx context.Context, c *coordinationv1.DeploymentCoordination, plan deployments.Plan, err error) {
	note := deployments.Note{
		Reason: coordinationv1.StatusUpdateFailedEvent, Warning: true, Message: fmt.Sprintf("the status cannot be written: %v", err),
	}
	if plan.Begins {
		note.Reason = coordinationv1.ActivationFailedEvent
		note.Message = fmt.Sprintf("no turn is given, since it cannot be written down: %v", err)
	}
	r.tell(ctx, c, note)
}
