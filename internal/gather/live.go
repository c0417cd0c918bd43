// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
)

// Confirm replaces the HealthChecks and the targets of a snapshot with live ones. If it
// returns an error, the snapshot is unchanged.
func (g Gatherer) Confirm(ctx context.Context, s *Snapshot) error {
	checks, err := g.liveChecks(ctx, s.Health.Checks)
	if err != nil {
		return err
	}
	found, live, err := g.liveTargets(ctx, s)
	if err != nil {
		return err
	}
	s.Health.Checks, s.Targets.All = checks, live
	s.Targets.All = g.consumed(s, found, s.Compared())
	return nil
}

// liveTargets reads the targets past the caches, without deleted ones, and their state. It
// holds no more of them than their outlines, because a tenant may have many. Field conflicts
// and refused writes stay as gathered.
func (g Gatherer) liveTargets(ctx context.Context, s *Snapshot) (found []targets.Target, live []content.Target, err error) {
	outlines, states := make([]*targets.Target, len(s.Found)), make([]content.Target, len(s.Found))
	var unread error
	err = targets.EachLive(ctx, g.Live, s.Found, func(i int, t targets.Target) {
		t, err := g.observed(ctx, s, t)
		unread = errors.Join(unread, err)
		outline := t.Outline()
		outlines[i], states[i] = &outline, g.liveState(s, i, t)
	})
	err = errors.Join(err, unread)
	if err != nil {
		return nil, nil, fmt.Errorf("confirm the targets: %w", err)
	}
	for i, outline := range outlines {
		if outline != nil {
			found, live = append(found, *outline), append(live, states[i])
		}
	}
	return found, live, nil
}

func (g Gatherer) liveState(s *Snapshot, i int, t targets.Target) content.Target {
	gathered, now := s.Targets.All[i], g.permitted(t, t.Observe(s.Rollout, s.release()))
	isSame := t.Object().GetUID() == s.Found[i].Object().GetUID()
	if isSame && gathered.Name != "" && gathered.State != v1alpha1.TargetApplied && now.State != v1alpha1.TargetApplied {
		return gathered
	}
	return now
}

// liveChecks reads HealthChecks past the cache, without deleted ones.
func (g Gatherer) liveChecks(ctx context.Context, seen []v1alpha1.HealthCheck) ([]v1alpha1.HealthCheck, error) {
	var live []v1alpha1.HealthCheck
	for i := range seen {
		check := v1alpha1.HealthCheck{}
		err := g.Live.Get(ctx, client.ObjectKeyFromObject(&seen[i]), &check)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("confirm the health: %w", err)
		}
		live = append(live, sharing(check, &seen[i]))
	}
	return live, nil
}

// sharing returns the live check with what has not changed since it was cached, so that ten
// workers do not hold it as often.
func sharing(live v1alpha1.HealthCheck, cached *v1alpha1.HealthCheck) v1alpha1.HealthCheck {
	if maps.Equal(live.Labels, cached.Labels) {
		live.Labels = cached.Labels
	}
	if maps.Equal(live.Annotations, cached.Annotations) {
		live.Annotations = cached.Annotations
	}
	if equality.Semantic.DeepEqual(live.Spec, cached.Spec) {
		live.Spec = cached.Spec
	}
	return live
}

// ConfirmUpstreams replaces what the upstreams of a snapshot say with what their Rollouts
// say now, past the caches. Their records stay the measure of how long a release
// was healthy. For upstreams in other clusters, it takes what the last fetch of their reports
// found; it is not confirmed if that was too long ago. If it returns an
// error, a part of the snapshot may be replaced.
func (g Gatherer) ConfirmUpstreams(ctx context.Context, s *Snapshot) (confirmed bool, err error) {
	confirmed = true
	for _, e := range s.Upstreams.Environments {
		for i := range e.Upstreams {
			u := &e.Upstreams[i]
			if u.IsRemote() {
				confirmed = g.confirmRemote(e.Environment, u, s.Now) && confirmed
			} else if err := g.confirmUpstream(ctx, u, s.Now); err != nil {
				return false, err
			}
		}
	}
	return confirmed, nil
}

// confirmUpstream reads the Rollout of an upstream. One that was deleted leaves what was
// recorded of it.
func (g Gatherer) confirmUpstream(ctx context.Context, u *upstream.Upstream, now time.Time) error {
	if u.Problem != nil {
		return nil
	}
	live := &v1alpha1.Rollout{}
	if err := g.Live.Get(ctx, client.ObjectKey{Namespace: u.Namespace, Name: u.Rollout}, live); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("confirm the upstream %s: %w", u.Environment, err)
	}
	view, err := g.liveView(ctx, live, u.Releases)
	if err != nil {
		return err
	}
	observed := environment.Read(view, now)
	if !environment.Same(u.Releases, observed) {
		u.Seen = time.Time{}
	}
	u.Releases = observed
	return nil
}
