// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// decide takes the decision of a pass, and asks for the reports of upstreams that it needs.
func (r *Reconciler) decide(ctx context.Context, s *gather.Snapshot) (promotion.Decision, error) {
	d, err := r.confirmed(ctx, s)
	switch {
	case err != nil:
		return d, err
	case s.Unsettled && d.Action == promotion.Nothing:
		return d, errUnsettled
	}
	remote{r.Reports}.follow(s, d)
	return d, nil
}

// confirmed uses what upstreams say now before it promotes a release. It uses live
// HealthChecks and targets before it decides that a promotion has ended, or that Flux
// deploys content that nobody promoted. After an outage the caches may show an old state
// for a while, and nothing that is found later changes an outcome. The error is of type
// postponed if something must be seen first.
func (r *Reconciler) confirmed(ctx context.Context, s *gather.Snapshot) (promotion.Decision, error) {
	if r.keepTargetChecks(ctx, s) {
		return promotion.Decision{}, errTargetChecks
	}
	if err := r.noteRequesters(ctx, s); err != nil {
		return promotion.Decision{}, err
	}
	d := promotion.Decide(s.Input)
	if provesFirst(s, d.Action) {
		if err := r.seesTargets(ctx, s); err != nil {
			return d, err
		}
	}
	moved := d.Reason == v1alpha1.TagMovedReason
	if d.Action.Promotes() && !moved {
		return r.confirmPromotion(ctx, s, d)
	}
	if err := r.confirmContent(ctx, s, moved); err != nil || !moved && !endsFor(s.Rollout, d.Action) {
		return d, err
	}
	if err := r.gatherer().Confirm(ctx, s); err != nil {
		return d, err
	}
	return promotion.Decide(s.Input), nil
}

// confirmContent lists what people have said of content that nobody has promoted, before the
// history says who has approved it.
func (r *Reconciler) confirmContent(ctx context.Context, s *gather.Snapshot, moved bool) error {
	if !gather.AsksForApprovals(s.Gates) || !moved && !promotion.ApprovesContent(s.Input) {
		return nil
	}
	return r.gatherer().ConfirmApprovals(ctx, s, s.Rollout.Current().Version.Tag)
}

// confirmPromotion asks the upstreams themselves before their proof lets a release go,
// also if a user promotes it. What users choose instead needs no proof.
func (r *Reconciler) confirmPromotion(ctx context.Context, s *gather.Snapshot, d promotion.Decision) (promotion.Decision, error) {
	if len(s.Upstreams.Environments) > 0 && d.Reason == v1alpha1.EligibleReason {
		if err := r.confirmUpstreams(ctx, s); err != nil {
			return d, err
		}
		if d = promotion.Decide(s.Input); !d.Action.Promotes() {
			return d, nil
		}
	}
	d, err := r.confirmApprovals(ctx, s, d)
	if err != nil || !d.Action.Promotes() {
		return d, err
	}
	return r.attribute(ctx, s, d)
}

// postponed means that a decision cannot be carried out before something was seen. Then
// the Rollout is reconciled again.
type postponed struct {
	because string
	// atMost is when the Rollout is reconciled again even if nothing wakes it.
	atMost time.Duration
}

func (p postponed) Error() string { return p.because }

// errTargetChecks means that HealthChecks of targets were written, whose events are on their
// way.
var errTargetChecks = postponed{because: "a HealthCheck of a target was created or corrected, whose event is on its way"}

// errUnsettled means that it is not known yet what holds releases.
var errUnsettled = postponed{"the Rollout or its Environment was created a moment ago, and what it needs is on its way", gather.SettlesWithin}

// errUnconfirmed means that the last fetch of the report of an upstream is too old. The end
// of the next one wakes the Rollout.
var errUnconfirmed = postponed{"a release would be promoted, once the report of an upstream was fetched again", recheckWithin}

func (r *Reconciler) confirmUpstreams(ctx context.Context, s *gather.Snapshot) error {
	g := r.gatherer()
	if r.Reports != nil {
		g.Reports = r.Reports.Gathered()
	}
	confirmed, err := g.ConfirmUpstreams(ctx, s)
	if err == nil && !confirmed {
		err = errUnconfirmed
		if r.Reports != nil {
			remote{r.Reports}.ask(s, remoteUpstreams(s), s.Now)
		}
	}
	return err
}

// endsFor reports whether an action permanently ends a promotion because of evidence.
// Without a bake, being applied is the only evidence, and the next pass finds what the
// cache missed.
func endsFor(rollout *v1alpha1.Rollout, action promotion.Action) bool {
	baked := rollout.Current().State() == v1alpha1.BakeInProgress
	return action == promotion.FailBake || action == promotion.FinishBake && baked
}
