// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/installation"
)

// instancesIn returns the Deployments of the controller in all namespaces.
func instancesIn(ctx context.Context, open cluster) ([]installation.Instance, error) {
	list := &appsv1.DeploymentList{}
	ours := client.MatchingLabels{installation.NameLabel: installation.PodLabels[installation.NameLabel]}
	if err := open.client.List(ctx, list, ours); err != nil {
		return nil, err //nolint:wrapcheck // unread says what could not be read
	}
	var all []installation.Instance
	for i := range list.Items {
		if instance, ok := installation.InstanceOf(&list.Items[i]); ok {
			all = append(all, instance)
		}
	}
	return all, nil
}
