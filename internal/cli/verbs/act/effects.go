// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
)

// effects says which decisions are others with other facts. promotes is true if a release
// goes out at once because of that.
func effects(ctx context.Context, p *program.Program, facts, after *snapshot.Snapshot) (effects []string, promotes bool, err error) {
	rollouts := &v1alpha1.RolloutList{}
	if err := facts.List(ctx, rollouts); err != nil {
		return nil, false, fmt.Errorf("list Rollouts: %w", err)
	}
	now := p.Now()
	for i := range rollouts.Items {
		key := client.ObjectKeyFromObject(&rollouts.Items[i])
		before, err := p.ViewIn(ctx, facts, key, now)
		if err != nil {
			return nil, false, err
		}
		then, err := p.ViewIn(ctx, after, key, now)
		if err != nil {
			return nil, false, err
		}
		effect, goesOut := changeOf(before, then)
		if effect != "" {
			effects = append(effects, effect)
		}
		promotes = promotes || goesOut
	}
	return effects, promotes, nil
}

// changeOf says what is decided otherwise with other facts; empty if nothing is. What could
// not be read may let a release go.
func changeOf(before, then program.View) (effect string, goesOut bool) {
	effect = describe(then, then.Decision)
	switch {
	case then.Err != nil:
		return fmt.Sprintf("%s/%s: a release may go out; not everything could be read: %s", then.Rollout.Namespace, then.Rollout.Name, then.Err), true
	case effect == describe(before, before.Decision):
		return "", false
	}
	return effect, then.Decision.Action.Promotes() && !then.Rollout.Spec.Suspend
}
