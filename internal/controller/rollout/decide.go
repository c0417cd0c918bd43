// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// decide uses what upstreams say now before it promotes a release, and live HealthChecks and targets before it decides that a promotion has ended,
// or that Flux deploys content that nobody promoted. After an outage the caches may show
// an old state for a while, and nothing that is found later changes an outcome.
func (r *Reconciler) decide(ctx context.Context, s *gather.Snapshot) (promotion.Decision, error) {
	d := promotion.Decide(s.Input)
	switch {
	case d.Reason == v1alpha1.TagMovedReason:
	case d.Action.Promotes():
		return r.confirmPromotion(ctx, s, d)
	case !endsFor(s.Rollout, d.Action):
		return d, nil
	}
	if err := r.gatherer().Confirm(ctx, s); err != nil {
		return d, err
	}
	return promotion.Decide(s.Input), nil
}

// confirmPromotion asks the upstreams themselves before their proof lets a release go.
// What users choose needs no proof.
func (r *Reconciler) confirmPromotion(ctx context.Context, s *gather.Snapshot, d promotion.Decision) (promotion.Decision, error) {
	if len(s.Upstreams.Environments) > 0 && d.Action != promotion.Adopt && !d.Manual {
		if err := r.gatherer().ConfirmUpstreams(ctx, s); err != nil {
			return d, err
		}
		if d = promotion.Decide(s.Input); !d.Action.Promotes() {
			return d, nil
		}
	}
	return r.attribute(ctx, s, d)
}

// endsFor reports whether an action permanently ends a promotion because of evidence.
// Without a bake, being applied is the only evidence, and the next pass finds what the
// cache missed.
func endsFor(rollout *v1alpha1.Rollout, action promotion.Action) bool {
	baked := rollout.Current().State() == v1alpha1.BakeInProgress
	return action == promotion.FailBake || action == promotion.FinishBake && baked
}
