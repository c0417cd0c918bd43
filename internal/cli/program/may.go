// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// May asks the API server whether the user has a verb on a Rollout. It answers everybody.
func (c Cluster) May(ctx context.Context, verb string, rollout *v1alpha1.Rollout) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{}
	review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Namespace: rollout.Namespace, Verb: verb, Group: v1alpha1.GroupVersion.Group, Resource: "rollouts", Name: rollout.Name,
	}
	if err := c.Client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("ask whether you may %s: %w", verb, err)
	}
	return review.Status.Allowed, nil
}
