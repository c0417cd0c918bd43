// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/installation"
)

// InstancesIn returns the Deployments of the controller in all namespaces.
func InstancesIn(ctx context.Context, open Cluster) ([]installation.Instance, error) {
	list := &appsv1.DeploymentList{}
	ours := client.MatchingLabels{installation.NameLabel: installation.PodLabels[installation.NameLabel]}
	if err := open.Client.List(ctx, list, ours); err != nil {
		return nil, err
	}
	var all []installation.Instance
	for i := range list.Items {
		if instance, ok := installation.InstanceOf(&list.Items[i]); ok {
			all = append(all, instance)
		}
	}
	return all, nil
}
