// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

func TestReleaseIsCarriedAllTheWay(t *testing.T) {
	const bake = 2 * time.Second
	s := newEnv(t)
	s.CreateFlux()
	s.Create(s.HealthCheck(), s.Rollout(s.Baked(bake, time.Minute)))
	s.Publish(s.Release("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)

	s.SetBakeTime(time.Hour)
	s.Publish(s.Release("1.1.0"))
	baking := s.AwaitState("1.1.0", v1alpha1.BakeInProgress)
	if got := kstatusOf(t, baking); got != status.InProgressStatus {
		t.Errorf("during the bake kstatus says %s, want %s", got, status.InProgressStatus)
	}
	s.SetBakeTime(bake)
	done := s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	if got := kstatusOf(t, done); got != status.CurrentStatus {
		t.Errorf("in the end kstatus says %s, want %s", got, status.CurrentStatus)
	}

	if diff := cmp.Diff([]string{"2 1.1.0 Succeeded", "1 1.0.0 Succeeded"}, env.History(done)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	for _, entry := range done.Status.History {
		if got := bakedFor(&entry); got < bake {
			t.Errorf("%s baked for %s, want at least %s", entry.Version.Tag, got, bake)
		}
	}
	if got, want := imageOf(s), "registry.example/shop:1.1.0"; got != want {
		t.Errorf("the Deployment runs %s, want %s", got, want)
	}
}

// kstatusOf returns the status that `flux` and `kubectl wait` compute from the Rollout's
// conditions.
func kstatusOf(t *testing.T, r *v1alpha1.Rollout) status.Status {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
	if err != nil {
		t.Fatal(err)
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: object})
	if err != nil {
		t.Fatal(err)
	}
	return result.Status
}

// bakedFor returns how long a promotion baked. The result is negative if the bake did not
// begin or has not ended.
func bakedFor(e *v1alpha1.DeploymentHistoryEntry) time.Duration {
	if e.BakeStartTime == nil || e.BakeEndTime == nil {
		return -1
	}
	return e.BakeEndTime.Sub(e.BakeStartTime.Time)
}

// imageOf returns the image that the application's Deployment runs.
func imageOf(s *env.Env) string {
	s.T.Helper()
	deployment := &appsv1.Deployment{}
	if err := plane.Client().Get(s.T.Context(), client.ObjectKey{Namespace: s.Namespace, Name: s.Name}, deployment); err != nil {
		s.T.Fatal(err)
	}
	return deployment.Spec.Template.Spec.Containers[0].Image
}
