// SPDX-License-Identifier: Apache-2.0

package quiet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/stage"
)

func TestAtRestNobodyAsksAnything(t *testing.T) {
	finished := stage.New(t, plane)
	finished.CreateFlux()
	finished.Create(finished.HealthCheck(), finished.Rollout(finished.Baked(time.Second, time.Minute)))
	finished.Publish(finished.ConfigRelease("1.0.0"))

	pending := stage.New(t, plane)
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
	if diff := cmp.Diff(controlplane.Requests{}, requests(t).Since(before)); diff != "" {
		t.Errorf("requests within a minute (-want +got):\n%s", diff)
	}
	if got := plane.Registry.Requests() - asked; got > 0 {
		t.Errorf("the registry was asked %d times within a minute", got)
	}
	if !plane.Controller.Running() {
		t.Error("it was quiet because the controller had ended")
	}
}
