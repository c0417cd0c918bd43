// SPDX-License-Identifier: Apache-2.0

package alone

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

func TestStatefulSetsRollByZoneUnderTheLeastOfRoles(t *testing.T) {
	objects, err := manifests.Kustomize(t.Context(), "config/statefulset-rollout")
	if err != nil {
		t.Fatal(err)
	}
	i := installation{namespace: "default", objects: objects}
	i.install(t)
	pod, port := i.deployment(t).Spec.Template.Spec, env.FreePort(t)
	process := i.run(t, "statefulset-rollout", pod, "--server.port="+port, "--health-probe-bind-address=:"+env.FreePort(t))
	awaitOK(t, process, port, "/ready")
	awaitOK(t, process, port, "/metrics")

	fleet := scenario.Fleet{App: scenario.NewApp(i.namespace, "store"), Zones: []string{"zone-a", "zone-b"}, MaxUnavailable: "2"}
	fleet.Replicas = 2
	for _, o := range fleet.Objects("1.0.0", nil) {
		o.SetNamespace(i.namespace)
		ensure(t, o)
	}
	awaitPods(t, i.namespace, "1.0.0", 4)
	for _, o := range fleet.Objects("2.0.0", nil) {
		o.SetNamespace(i.namespace)
		if err := plane.Client().Patch(t.Context(), o, client.Apply, client.FieldOwner("test"), client.ForceOwnership); err != nil { //nolint:staticcheck // the objects are typed
			t.Fatal(err)
		}
	}
	awaitPods(t, i.namespace, "2.0.0", 4)
	awaitOK(t, process, port, "/metrics")

	want := []string{
		"delete /pods", "list /pods", "list apps/statefulsets", "update apps/statefulsets/status", "watch /pods", "watch apps/statefulsets",
	}
	if diff := cmp.Diff(want, used(t, i.user(pod))); diff != "" {
		t.Errorf("rights that were used (-want +got):\n%s", diff)
	}
}

// awaitPods waits until a number of pods run a version, and there are no other pods.
func awaitPods(t *testing.T, namespace, version string, number int) {
	t.Helper()
	env.Eventually(t, fmt.Sprintf("%d pods of %s", number, version), func() (bool, string) {
		list := &corev1.PodList{}
		if err := plane.Client().List(t.Context(), list, client.InNamespace(namespace), client.HasLabels{"statefulset.kubernetes.io/pod-name"}); err != nil {
			t.Fatal(err)
		}
		images, ready := map[string]int{}, 0
		for i := range list.Items {
			images[list.Items[i].Spec.Containers[0].Image]++
			for _, c := range list.Items[i].Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		seen := fmt.Sprintf("%v, %d ready", images, ready)
		for image := range images {
			if image[len(image)-len(version):] != version {
				return false, seen
			}
		}
		return len(list.Items) == number && ready == number, seen
	})
}
