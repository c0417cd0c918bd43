// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cache/expectations"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// What the mirror gate says of itself. It does not say what holds which release: it is written
// only when the list of versions changes.
const (
	mirrorTitle = "Environments, quarantines, failures and gates of the cluster"
	mirrorText  = "Shows clients that know only gates what else holds releases. It holds nothing by itself. The status of the Rollout has the reasons."
)

// mirrorSettles is how long the cache may not show a gate that was created.
const mirrorSettles = 10 * time.Second

// mirrorHolds keeps a gate that lets through what is not held for reasons that only this
// controller knows. Without such holds there is no gate.
func (r *Reconciler) mirrorHolds(ctx context.Context, rollout *v1alpha1.Rollout, s gather.Snapshot, d promotion.Decision) error {
	free, gate := promotion.Mirrored(s.Input, d.Candidates), s.Gates.Mirror
	switch {
	case d.Action.Promotes(), s.Gates.Problem != nil: // the next pass knows
		return nil
	case gate != nil:
		return mirrorWriter{r.Client, &r.writes}.update(ctx, gate, free)
	case free == nil, slices.ContainsFunc(s.Gates.Gates, func(g v1alpha1.RolloutGate) bool { return g.Name == promotion.MirrorName(rollout) }):
		return nil // one of that name that a user has created stays as it is
	}
	m := r.memory.of(client.ObjectKeyFromObject(rollout))
	if created := m.mirrors.of(rollout); created != nil && r.Now().Sub(*created) < mirrorSettles {
		return nil
	}
	if err := (mirrorWriter{r.Client, &r.writes}).create(ctx, rollout, free); err != nil {
		return err
	}
	now := r.Now()
	m.mirrors.put(rollout, &now)
	return nil
}

// mirrorWriter writes the gate.
type mirrorWriter struct {
	client client.Client
	writes *expectations.Versions
}

// update writes the list of versions if it has changed. It deletes the gate if nothing
// is held.
func (w mirrorWriter) update(ctx context.Context, gate *v1alpha1.RolloutGate, free []string) error {
	switch shown := gate.Spec.AllowedVersions; {
	case w.writes.Stale(gate), free != nil && shown != nil && slices.Equal(*shown, free):
		return nil
	case free == nil:
		return w.writes.Delete(ctx, w.client, gate)
	}
	changed := gate.DeepCopy()
	changed.Spec.AllowedVersions, changed.Spec.Passing = &free, nil
	written, err := write.Patch(ctx, w.client, changed, client.MergeFrom(gate))
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	w.writes.Wrote(written)
	return nil
}

// create creates the gate. One of another Rollout that has that name stays as it is.
func (w mirrorWriter) create(ctx context.Context, rollout *v1alpha1.Rollout, free []string) error {
	gate := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{
		Namespace: rollout.Namespace, Name: promotion.MirrorName(rollout), Labels: map[string]string{v1alpha1.MirrorLabel: "true"},
		Annotations:     map[string]string{v1alpha1.PrettyNameAnnotation: mirrorTitle, v1alpha1.DescriptionAnnotation: mirrorText},
		OwnerReferences: gather.OwnedBy(rollout),
	}}
	gate.Spec.RolloutRef, gate.Spec.AllowedVersions = &v1alpha1.LocalObjectReference{Name: rollout.Name}, &free
	switch err := w.client.Create(ctx, gate, client.FieldOwner(write.FieldManager)); {
	case apierrors.IsAlreadyExists(err):
		ctrl.LoggerFrom(ctx).V(1).Info("a gate of the name of the mirror exists", "gate", gate.Name)
	case err != nil:
		return fmt.Errorf("create the gate that shows what else holds releases: %w", err)
	}
	return nil
}
