// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// halfway counts the kills between the record of a promotion and the write of all its
// targets.
type halfway struct {
	client client.Client
	kills  int
}

// look checks in which state the killed controller has left the Rollouts.
func (h *halfway) look(ctx context.Context) error {
	rollouts, repositories := &v1alpha1.RolloutList{}, &sourcev1.OCIRepositoryList{}
	if err := h.client.List(ctx, rollouts); err != nil {
		return fmt.Errorf("list Rollouts: %w", err)
	}
	if err := h.client.List(ctx, repositories); err != nil {
		return fmt.Errorf("list OCIRepositories: %w", err)
	}
	carried := map[client.ObjectKey]string{}
	for i := range repositories.Items {
		if ref := repositories.Items[i].Spec.Reference; ref != nil {
			carried[client.ObjectKeyFromObject(&repositories.Items[i])] = ref.Tag
		}
	}
	for i := range rollouts.Items {
		rollout := &rollouts.Items[i]
		if current := rollout.Current(); current != nil && current.Version.Tag != carried[client.ObjectKeyFromObject(rollout)] {
			h.kills++
			return nil
		}
	}
	return nil
}
