// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
)

// effects sets which decisions are others with other facts, and whether a release goes out
// at once because of that, or may do so.
func (p *prediction) effects(ctx context.Context, of *program.Program, facts, after *snapshot.Snapshot) error {
	rollouts := &v1alpha1.RolloutList{}
	if err := facts.List(ctx, rollouts); err != nil {
		return fmt.Errorf("list Rollouts: %w", err)
	}
	now, unread := of.Now(), program.Unread{}
	for i := range rollouts.Items {
		key := client.ObjectKeyFromObject(&rollouts.Items[i])
		before, err := of.ViewIn(ctx, facts, key, now)
		if err != nil {
			return err
		}
		then, err := of.ViewIn(ctx, after, key, now)
		if err != nil {
			return err
		}
		effect, goesOut := changeOf(before, then)
		if effect != "" {
			p.more = append(p.more, effect)
		}
		p.promotes = p.promotes || goesOut
		maps.Copy(unread, then.Unread)
	}
	p.doubt(unread)
	return nil
}

// changeOf says what is decided otherwise with other facts; empty if nothing is. What could
// not be read may let a release go.
func changeOf(before, then program.View) (effect string, goesOut bool) {
	effect = describe(then, then.Visible)
	switch {
	case then.Err != nil && !then.Unread.Any():
		return fmt.Sprintf("%s/%s: a release may go out; not everything could be read: %s", then.Rollout.Namespace, then.Rollout.Name, then.Err), true
	case effect == describe(before, before.Visible):
		return "", false
	}
	return effect, then.Visible.Action.Promotes() && !then.Rollout.Spec.Suspend
}
