// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/imagepolicy"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
)

// gateRolloutIndex finds gates by the name of their Rollout.
const gateRolloutIndex = ".spec.rolloutRef.name"

// IndexApprovals adds the index of RolloutApprovals.
func IndexApprovals(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &v1alpha1.RolloutApproval{}, approvalRolloutIndex, func(o client.Object) []string {
		return []string{o.(*v1alpha1.RolloutApproval).Spec.RolloutRef.Name}
	})
	if err != nil {
		return fmt.Errorf("index RolloutApprovals by Rollout: %w", err)
	}
	return nil
}

// Index adds the field indexes that a [Gatherer] needs, except those of HelmReleases and
// RolloutApprovals.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	if err := imagepolicy.Index(ctx, indexer); err != nil {
		return err
	}
	if err := targets.Index(ctx, indexer); err != nil {
		return err
	}
	if err := IndexSelections(ctx, indexer); err != nil {
		return err
	}
	err := indexer.IndexField(ctx, &v1alpha1.RolloutGate{}, gateRolloutIndex, func(o client.Object) []string {
		return []string{o.(*v1alpha1.RolloutGate).RolloutName()}
	})
	if err != nil {
		return fmt.Errorf("index RolloutGates by Rollout: %w", err)
	}
	return nil
}
