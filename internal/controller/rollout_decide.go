// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// decide uses live HealthChecks and targets before it decides that a promotion has ended,
// or that Flux deploys content that nobody promoted. After an outage the caches may show
// an old state for a while, and nothing that is found later changes an outcome.
func (r *RolloutReconciler) decide(ctx context.Context, w *snapshot) (promotion.Decision, error) {
	d := promotion.Decide(w.Input)
	switch {
	case d.Reason == v1alpha1.TagMovedReason:
	case d.Action.Promotes():
		return r.attribute(ctx, w, d)
	case !endsFor(w.Rollout, d.Action):
		return d, nil
	}
	if err := r.confirmEvidence(ctx, w); err != nil {
		return d, err
	}
	return promotion.Decide(w.Input), nil
}

// endsFor reports whether an action permanently ends a promotion because of evidence.
// Without a bake, being applied is the only evidence, and the next pass finds what the
// cache missed.
func endsFor(rollout *v1alpha1.Rollout, action promotion.Action) bool {
	baked := rollout.Current().State() == v1alpha1.BakeInProgress
	return action == promotion.FailBake || action == promotion.FinishBake && baked
}

// confirmEvidence replaces the cached HealthChecks and targets with live ones.
func (r *RolloutReconciler) confirmEvidence(ctx context.Context, w *snapshot) error {
	checks, err := r.liveChecks(ctx, w.Health.Checks)
	if err != nil {
		return err
	}
	live, err := r.liveTargets(ctx, w)
	if err != nil {
		return err
	}
	w.Health.Checks, w.Targets.All = checks, live
	w.Targets.All = w.Compared()
	return nil
}

// liveTargets reads the state of the targets past the caches, without deleted targets.
// Field conflicts and refused writes stay as gathered.
func (r *RolloutReconciler) liveTargets(ctx context.Context, w *snapshot) ([]promotion.Target, error) {
	found, err := targets.LiveAll(ctx, r.APIReader, w.targets)
	if err != nil {
		return nil, fmt.Errorf("confirm the targets: %w", err)
	}
	seen := map[types.UID]promotion.Target{}
	for i, t := range w.targets {
		seen[t.Object().GetUID()] = w.Targets.All[i]
	}
	var live []promotion.Target
	for _, t := range found {
		gathered, now := seen[t.Object().GetUID()], r.permitted(t, t.Observe(w.Rollout, w.Rollout.Current().Version.Tag))
		if gathered.Name != "" && gathered.State != v1alpha1.TargetApplied && now.State != v1alpha1.TargetApplied {
			now = gathered
		}
		live = append(live, now)
	}
	return live, nil
}

// liveChecks reads HealthChecks past the cache, without deleted ones.
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
