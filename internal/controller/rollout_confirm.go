// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// errStale means that the Rollout has changed since it was read.
var errStale = errors.New("the Rollout has changed since it was read")

// confirm makes sure that the history at hand is the newest: a write under its
// lock has just proven it, otherwise the Rollout is read past the cache. An old
// history would bring an old version back to the targets.
func (r *RolloutReconciler) confirm(ctx context.Context, rollout *v1alpha1.Rollout, recorded bool) error {
	if recorded {
		return nil
	}
	live := &v1alpha1.Rollout{}
	err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(rollout), live)
	switch {
	case apierrors.IsNotFound(err):
		return errStale
	case err != nil:
		return fmt.Errorf("confirm the history: %w", err)
	case live.UID != rollout.UID || live.ResourceVersion != rollout.ResourceVersion:
		return errStale
	}
	return nil
}

// decide takes the decision that a bake ended well only on what its HealthChecks
// say now: after an outage the caches may show for a while what was so before it,
// and an error that is found when the bake is over fails nothing any more.
func (r *RolloutReconciler) decide(ctx context.Context, w *world) (promotion.Decision, error) {
	d := promotion.Decide(w.Input)
	if d.Action.Promotes() {
		return r.attribute(ctx, w, d)
	}
	if d.Action != promotion.FinishBake || w.Rollout.Current().State() != v1alpha1.BakeInProgress {
		return d, nil
	}
	live, err := r.liveChecks(ctx, w.Health.Checks)
	if err != nil {
		return d, err
	}
	w.Health.Checks = live
	return promotion.Decide(w.Input), nil
}

// liveChecks reads HealthChecks past the cache. Those that are gone say nothing.
func (r *RolloutReconciler) liveChecks(ctx context.Context, seen []v1alpha1.HealthCheck) ([]v1alpha1.HealthCheck, error) {
	var live []v1alpha1.HealthCheck
	for i := range seen {
		check := v1alpha1.HealthCheck{}
		err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(&seen[i]), &check)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("confirm the health: %w", err)
		}
		live = append(live, check)
	}
	return live, nil
}
