// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// act makes the writes of a plan. It skips components with a journal that is not stored.
// As long as a Deployment that rolls out could not be paused, it unpauses no Deployment
// of the same component.
func (r *Reconciler) act(ctx context.Context, seen snapshot, plan deployments.Plan, unstored components) []error {
	var errs []error
	rolling := components{}
	for _, w := range plan.Writes {
		if unstored[w.Component] || w.Kind == deployments.WriteUnpause && rolling[w.Component] {
			continue
		}
		made := false
		if !r.retries.waits(w.Deployment, seen.Now) {
			err := r.write(ctx, seen, w)
			made, errs = err == nil, append(errs, err)
		}
		if w.Stops && !made {
			rolling[w.Component] = true
		}
	}
	return errs
}

// write changes one Deployment, only if it still is the version that was decided upon,
// and verifies that the result contains the change. A Deployment that has been deleted in
// the meantime needs no write.
func (r *Reconciler) write(ctx context.Context, seen snapshot, w deployments.Write) error {
	before := seen.deployments[w.Deployment]
	after, err := r.patch(ctx, before, w)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return err
	case err != nil:
		r.retries.failed(w.Deployment, err, r.Now())
		note := w.Failed
		note.Message += ": " + err.Error()
		r.emitAll(ctx, seen, w.Coordinations, note)
		return fmt.Errorf("write Deployment %s: %w", w.Deployment, err)
	}
	r.retries.made(w.Deployment)
	r.holds.wrote(before, w.Kind == deployments.WritePause)
	r.writes.Wrote(after)
	r.emitAll(ctx, seen, w.Coordinations, w.Done)
	ctrl.LoggerFrom(ctx).V(1).Info("wrote a Deployment", "deployment", w.Deployment, "kind", w.Kind, "paused", w.Paused)
	return nil
}

// patch changes spec.paused and the annotation held-by, and nothing else.
func (r *Reconciler) patch(ctx context.Context, before *appsv1.Deployment, w deployments.Write) (*appsv1.Deployment, error) {
	body, err := json.Marshal(change(before, w))
	if err != nil {
		return nil, err
	}
	after, err := write.Patch(ctx, r.Client, before, client.RawPatch(types.MergePatchType, body))
	if err != nil {
		return nil, err
	}
	return after, verify(after, w)
}

// change returns a merge patch. It leaves out values that are already as wanted, so their
// field manager does not change.
func change(before *appsv1.Deployment, w deployments.Write) map[string]any {
	metadata := map[string]any{"resourceVersion": before.ResourceVersion}
	if before.Annotations[coordinationv1.HeldByAnnotation] != w.HeldBy {
		var heldBy any // null removes the annotation
		if w.HeldBy != "" {
			heldBy = w.HeldBy
		}
		metadata["annotations"] = map[string]any{coordinationv1.HeldByAnnotation: heldBy}
	}
	patch := map[string]any{"metadata": metadata}
	if before.Spec.Paused != w.Paused {
		patch["spec"] = map[string]any{"paused": w.Paused}
	}
	return patch
}

// errUndone means that an admission plugin has reverted a write.
var errUndone = errors.New("an admission plugin of the API server undid it")

func verify(after *appsv1.Deployment, w deployments.Write) error {
	if after.Spec.Paused != w.Paused {
		return errUndone
	}
	return nil
}
