// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
)

// gather reads the input of the decision, and forgets the targets that are targets no
// more.
func (r *Reconciler) gather(ctx context.Context, rollout *v1alpha1.Rollout) gather.Snapshot {
	key := client.ObjectKeyFromObject(rollout)
	m := r.memory.of(key)
	s := r.gatherer().Gather(ctx, m.reported.acknowledged(rollout), r.Now())
	s.MetadataOff = r.Metadata == nil
	if s.Targets.Problem == nil {
		m.conflicts.forgetBut(s.Found)
		m.rejections.forgetBut(s.Found)
	}
	return s
}

func (r *Reconciler) gatherer() gather.Gatherer {
	return gather.Gatherer{
		Client: r.Client, Live: r.APIReader,
		NoCrossNamespaceRefs: r.NoCrossNamespaceRefs, HelmReleases: r.late.helmReleases.Load(), GitRepositories: r.late.gitRepositories.Load(), Environments: r.late.environments.Load(),
		Artifacts: r.late.artifacts.Load(), Generators: &r.generators,
		Quarantines: r.late.quarantines.Load(), QuarantinesEverywhere: r.QuarantinesEverywhere,
		Approvals: r.late.approvals.Load(), Identity: r.Identity, InstanceLabels: r.Shard.Labels(),
		Images: images{r.Metadata}, Windows: &r.windows, Memory: known{r}, Started: r.started,
	}
}

// known is what the reconciler knows that no cache shows.
type known struct{ *Reconciler }

func (k known) Stale(copied client.Object) bool { return k.writes.Stale(copied) }

// Judge reports a target as contested or failed, as the last write to it ended.
func (k known) Judge(ctx context.Context, rollout *v1alpha1.Rollout, t targets.Target, seen content.Target) (content.Target, error) {
	seen, err := k.judgeConflict(ctx, rollout, t, seen)
	return k.memory.of(client.ObjectKeyFromObject(rollout)).judgeRejection(rollout.Current(), t, seen), err
}

// Checks returns HealthChecks as they were reset.
func (k known) Checks(rollout *v1alpha1.Rollout, checks []v1alpha1.HealthCheck) ([]v1alpha1.HealthCheck, map[string]string) {
	return k.resetter().asReset(checks), k.memory.of(client.ObjectKeyFromObject(rollout)).rejectedResets(checks)
}
