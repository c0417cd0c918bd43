// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// AwaitDeployments waits until all Deployments of a fleet exist, and each is in the
// wanted state.
func AwaitDeployments(t *testing.T, from client.Reader, fleet scenario.Fleet, what string, wanted func(*appsv1.Deployment) bool) {
	t.Helper()
	Eventually(t, what, func() (bool, string) {
		list := &appsv1.DeploymentList{}
		if err := from.List(t.Context(), list, client.InNamespace(fleet.Namespace)); err != nil {
			t.Fatal(err)
		}
		all := len(list.Items) == len(fleet.Members)
		var seen strings.Builder
		for i := range list.Items {
			d := &list.Items[i]
			all = all && wanted(d)
			fmt.Fprintf(&seen, "%s paused=%t available=%d %v\n", d.Name, d.Spec.Paused, d.Status.AvailableReplicas, d.Annotations)
		}
		return all, seen.String()
	})
}
