// SPDX-License-Identifier: Apache-2.0

package gather

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

// Confirm replaces the HealthChecks and the targets of a snapshot with live ones. If it
// returns an error, the snapshot is unchanged.
func (g Gatherer) Confirm(ctx context.Context, s *Snapshot) error {
	checks, err := g.liveChecks(ctx, s.Health.Checks)
	if err != nil {
		return err
	}
	live, err := g.liveTargets(ctx, s)
	if err != nil {
		return err
	}
	s.Health.Checks, s.Targets.All = checks, live
	s.Targets.All = s.Compared()
	return nil
}

// liveTargets reads the state of the targets past the caches, without deleted targets.
// Field conflicts and refused writes stay as gathered.
func (g Gatherer) liveTargets(ctx context.Context, s *Snapshot) ([]promotion.Target, error) {
	found, err := targets.LiveAll(ctx, g.Live, s.Found)
	if err != nil {
		return nil, fmt.Errorf("confirm the targets: %w", err)
	}
	seen := map[types.UID]promotion.Target{}
	for i, t := range s.Found {
		seen[t.Object().GetUID()] = s.Targets.All[i]
	}
	var live []promotion.Target
	for _, t := range found {
		gathered, now := seen[t.Object().GetUID()], g.permitted(t, t.Observe(s.Rollout, s.Rollout.Current().Version.Tag))
		if gathered.Name != "" && gathered.State != v1alpha1.TargetApplied && now.State != v1alpha1.TargetApplied {
			now = gathered
		}
		live = append(live, now)
	}
	return live, nil
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
		live = append(live, check)
	}
	return live, nil
}
