// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

func TestReleaseWaitsForAScheduleAndGoesWhenItOpens(t *testing.T) {
	s := newEnv(t)
	s.CreateFlux()
	s.Create(s.Rollout())
	s.Publish(s.Release("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)

	freeze := &v1alpha1.RolloutSchedule{
		ObjectMeta: metav1.ObjectMeta{Name: "freeze", Namespace: s.Namespace},
		Spec: v1alpha1.RolloutScheduleSpec{
			RolloutSelector: &metav1.LabelSelector{}, Timezone: "America/New_York", Action: v1alpha1.ScheduleDeny,
			Rules: []v1alpha1.ScheduleRule{{Name: "always"}},
		},
	}
	s.Create(freeze)
	s.AwaitClosed()
	s.Publish(s.Release("1.1.0"))
	const closed = "GatesPassing=False ScheduleClosed: 1.1.0: RolloutSchedule freeze is closed by rule always (no end time)"
	held := s.Await("held by the schedule", func(r *v1alpha1.Rollout) bool {
		return env.Condition(r, v1alpha1.GatesPassingCondition) == closed && len(r.Status.Gates) == 1
	})
	if gate := held.Status.Gates[0]; !strings.HasPrefix(gate.Name, "schedule-gate-freeze-") || *gate.Passing {
		t.Errorf("the gate of the schedule is shown as %+v", gate)
	}
	s.Stays("at 1.0.0", isHistory(env.History(held)...))

	s.Change(freeze, func() { freeze.Spec.Action = v1alpha1.ScheduleAllow })
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	s.Delete(freeze)
	s.Await("without the gate of the schedule", func(*v1alpha1.Rollout) bool {
		gates := &v1alpha1.RolloutGateList{}
		if err := s.Plane.Client().List(t.Context(), gates, client.InNamespace(s.Namespace)); err != nil {
			t.Fatal(err)
		}
		return len(gates.Items) == 0
	})
}
