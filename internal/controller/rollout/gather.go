// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// gather reads the input of the decision, and forgets the targets that are targets no
// more.
func (r *Reconciler) gather(ctx context.Context, rollout *v1alpha1.Rollout) gather.Snapshot {
	key := client.ObjectKeyFromObject(rollout)
	s := r.gatherer().Gather(ctx, r.reported.acknowledged(key, rollout), r.Now())
	s.MetadataOff = r.Metadata == nil
	if s.Targets.Problem == nil {
		r.conflicts.forgetBut(key, s.Found)
		r.rejections.forgetBut(key, s.Found)
	}
	return s
}

func (r *Reconciler) gatherer() gather.Gatherer {
	return gather.Gatherer{
		Client: r.Client, Live: r.APIReader,
		NoCrossNamespaceRefs: r.NoCrossNamespaceRefs, HelmReleases: r.helm.cached.Load(), Environments: r.environments.Load(),
		Quarantines: r.quarantines.Load(), QuarantinesEverywhere: r.QuarantinesEverywhere,
		InstanceLabels: r.Shard.Labels(),
		Images:         images{r.Metadata}, Windows: &r.windows, Memory: memory{r}, Started: r.started,
	}
}

// memory is what the reconciler knows that no cache shows.
type memory struct{ *Reconciler }

func (m memory) Stale(copied client.Object) bool { return m.writes.Stale(copied) }

// Judge reports a target as contested or failed, as the last write to it ended.
func (m memory) Judge(ctx context.Context, rollout *v1alpha1.Rollout, t targets.Target, seen promotion.Target) (promotion.Target, error) {
	seen, err := m.judgeConflict(ctx, rollout, t, seen)
	return m.rejections.judge(rollout, t, seen), err
}

// Checks returns HealthChecks as they were reset.
func (m memory) Checks(rollout *v1alpha1.Rollout, checks []v1alpha1.HealthCheck) ([]v1alpha1.HealthCheck, map[string]string) {
	return m.asReset(checks), m.resets.rejections(rollout, checks)
}
