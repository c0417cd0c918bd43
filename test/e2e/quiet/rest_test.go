// SPDX-License-Identifier: Apache-2.0

package quiet

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

func TestAtRestNobodyAsksAnything(t *testing.T) {
	finished := env.New(t, plane)
	finished.CreateFlux()
	finished.Create(finished.HealthCheck(), finished.Rollout(finished.Baked(time.Second, time.Minute)))
	finished.Publish(finished.ConfigRelease("1.0.0"))

	pending := env.New(t, plane)
	pending.CreateFlux()
	foreign, class := pending.HealthCheck(), "example"
	foreign.Name, foreign.Spec.Class, foreign.Annotations = "foreign", &class, nil
	pending.Create(pending.HealthCheck(), foreign, pending.Rollout(pending.Baked(time.Hour, time.Minute)))
	pending.Publish(pending.ConfigRelease("1.0.0"))

	finished.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	pending.Await("the reset", func(*v1alpha1.Rollout) bool {
		pending.Read(foreign)
		return foreign.Status.Status == v1alpha1.HealthStatusPending
	})
	pending.ChangeStatus(foreign, func() { foreign.Status.Status = v1alpha1.HealthStatusHealthy })
	pending.AwaitState("1.0.0", v1alpha1.BakeInProgress)
	awaitQuiet(t)

	before, asked := requests(t), plane.Registry.Requests()
	time.Sleep(time.Minute)
	if diff := cmp.Diff(controlplane.Requests{}, withoutRenewals(requests(t).Since(before))); diff != "" {
		t.Errorf("requests within a minute (-want +got):\n%s\nthe last events: %q", diff, lastEvents(t))
	}
	if got := plane.Registry.Requests() - asked; got > 0 {
		t.Errorf("the registry was asked %d times within a minute", got)
	}
	if !plane.Controller.Running() {
		t.Error("it was quiet because the controller had ended")
	}
}

// withoutRenewals removes watches that were opened again. Each client opens each of its
// watches again every five to ten minutes, possibly within this minute. At most three
// clients watch a kind. A client that never comes to rest would open it more often.
func withoutRenewals(asked controlplane.Requests) controlplane.Requests {
	maps.DeleteFunc(asked, func(request controlplane.Request, times int) bool {
		return request.Verb == "WATCH" && times <= 3
	})
	return asked
}

// lastEvents returns the newest events of the cluster. They help to find the cause of
// requests.
func lastEvents(t *testing.T) []string {
	t.Helper()
	list := &corev1.EventList{}
	if err := plane.Client().List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	var last []string
	for _, e := range list.Items[:min(5, len(list.Items))] {
		last = append(last, fmt.Sprintf("%s %s of %s %s/%s by %s: %s", e.CreationTimestamp.UTC().Format(time.TimeOnly), e.Reason,
			e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name, e.Source.Component, e.Message))
	}
	return last
}
