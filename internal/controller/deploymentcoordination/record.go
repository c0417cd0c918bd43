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

// components is a set of components of a plan, by name.
type components map[string]bool

// record stores the journals that have changed, each under an optimistic lock: if two
// passes, or two controllers, decide on the same state, only one is written, and the
// other reads again. After the first journal that cannot be stored, record skips the
// other journals of that component, and the component must not be acted on. It reports
// whether any journal was stored, and returns the components that were not, and the
// errors.
func (r *Reconciler) record(ctx context.Context, seen snapshot, plan deployments.Plan) (stored bool, unstored components, errs []error) {
	unstored = components{}
	for _, journal := range plan.Journals {
		if unstored[journal.Component] {
			continue
		}
		c := seen.coordinations[journal.Coordination]
		changed, err := r.store(ctx, c, journal.Status)
		if err != nil {
			unstored[journal.Component] = true
			errs = append(errs, r.unrecorded(ctx, c, plan, err))
			continue
		}
		stored = stored || changed
		r.emit(ctx, c, journal.Notes...)
	}
	return stored, unstored, errs
}

// errTooEarly means that storing a journal failed a moment ago.
var errTooEarly = errors.New("it is too early to try again")

func (r *Reconciler) store(ctx context.Context, c *coordinationv1.DeploymentCoordination, next coordinationv1.DeploymentCoordinationStatus) (changed bool, err error) {
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

// unrecorded emits an event about a journal that could not be stored, and returns the
// error of the pass. The journal has a retry delay of its own: otherwise the backoff of
// the namespace would delay its other coordinations more and more. A faster writer is no
// failure.
func (r *Reconciler) unrecorded(ctx context.Context, c *coordinationv1.DeploymentCoordination, plan deployments.Plan, err error) error {
	switch {
	case errors.Is(err, errTooEarly):
		return nil
	case isOutrun(err):
		return err
	}
	key := client.ObjectKeyFromObject(c)
	r.journals.failed(key.String(), err, r.Now())
	r.reportUnrecorded(ctx, c, plan, err)
	return fmt.Errorf("write the status of DeploymentCoordination %s: %w", key, err)
}

// reportUnrecorded emits an event about a journal that could not be written.
func (r *Reconciler) reportUnrecorded(ctx context.Context, c *coordinationv1.DeploymentCoordination, plan deployments.Plan, err error) {
	note := deployments.Note{
		Reason: coordinationv1.StatusUpdateFailedEvent, Warning: true, Message: fmt.Sprintf("the status cannot be written: %v", err),
	}
	if plan.Begins {
		note.Reason = coordinationv1.ActivationFailedEvent
		note.Message = fmt.Sprintf("no turn is given, since it cannot be written down: %v", err)
	}
	r.emit(ctx, c, note)
}
