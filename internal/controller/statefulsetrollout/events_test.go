// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func keyOf(o client.Object) client.ObjectKey { return client.ObjectKeyFromObject(o) }

// warnings returns the events of type Warning so far.
func (s *testEnv) warnings() []fixture.Event {
	return slices.DeleteFunc(s.Events.All(), func(e fixture.Event) bool { return e.Type != corev1.EventTypeWarning })
}

func TestMistakeInAnAnnotationIsSaidOnce(t *testing.T) {
	s := open(t,
		zone("zone-a", 2, annotated(rolloutgroup.MaxUnavailableAnnotation, "many")),
		zone("zone-b", 1, annotated("grafana.com/rollout-downscale-leader", "zone-a"), labelled("grafana.com/no-downscale", "true")),
	)
	s.play(t)
	s.release("2.0.0", "zone-a", "zone-b")
	s.runs("2.0.0", "zone-a", "zone-b")
	s.Expect(s.warnings()).To(ConsistOf(
		fixture.Event{On: "zone-a", Type: "Warning", Reason: "InvalidMaxUnavailable", Message: `rollout-max-unavailable is "many", ` +
			"which is neither a positive number nor a percentage from 1% to 100%; 1 is used"},
		fixture.Event{On: "zone-b", Type: "Warning", Reason: "Unsupported",
			Message: "not obeyed by this controller: grafana.com/no-downscale, grafana.com/rollout-downscale-leader"},
	))
	s.Events.Take()
	s.change("zone-a", annotated(rolloutgroup.MaxUnavailableAnnotation, "-2"))
	s.Eventually(s.warnings).Should(ConsistOf(HaveField("Message", ContainSubstring(`"-2"`))))
}

func TestWhyAGroupIsBlockedIsSaid(t *testing.T) {
	s := open(t, zone("zone-a", 1), zone("zone-b", 2))
	s.play(t)
	s.saysReady("zone-b-0", corev1.ConditionFalse)
	s.release("2.0.0", "zone-a")
	want := fixture.Event{
		On: "zone-a", Type: "Warning", Reason: "RolloutBlocked",
		Message: "zone-a waits until all other sets are ready: zone-b has 1 of 2 pods available: zone-b-0 is not ready",
	}
	s.Eventually(s.warnings).Should(ConsistOf(want))
	s.Eventually(func() string { return s.blocked("ingester") }).Should(Equal(rolloutgroup.SetNotReadyReason))
	s.change("zone-b", annotated("example.com/unrelated", "x"), labelled("example.com/unrelated", "x"))
	s.Consistently(s.warnings).Should(ConsistOf(want))
	s.saysReady("zone-b-0", corev1.ConditionTrue)
	s.runs("2.0.0", "zone-a")
	s.Eventually(func() string { return s.blocked("ingester") }).Should(BeEmpty())
}

func TestMetricsOfAGroupEndWithIt(t *testing.T) {
	names := []string{
		"rollout_operator_group_reconciles_total", "rollout_operator_group_reconciles_failed_total",
		"rollout_operator_group_reconcile_duration_seconds", "rollout_operator_last_successful_group_reconcile_timestamp_seconds",
		"rollout_operator_group_blocked",
	}
	broken := strategy("RollingUpdate")
	s := open(t, zone("zone-a", 1), zone("store-a", 1, labelled(rolloutgroup.Label, "store"), broken))
	s.play(t)
	groups := func(name string) func() []string {
		return func() []string {
			var all []string
			for _, series := range s.series(name) {
				if !slices.Contains(all, series["rollout_group"]) {
					all = append(all, series["rollout_group"])
				}
			}
			return all
		}
	}
	for _, name := range names {
		want := []string{"ingester", "store"}
		if name == names[3] {
			want = want[:1] // the other group has never succeeded
		}
		s.Eventually(groups(name)).Should(ConsistOf(want), name)
	}
	s.Expect(s.series(names[1])).To(ConsistOf(
		And(HaveKeyWithValue("rollout_group", "ingester"), HaveKeyWithValue("value", "0")),
		And(HaveKeyWithValue("rollout_group", "store"), Not(HaveKeyWithValue("value", "0"))),
	), "an invalid group is no success")

	s.Expect(s.Delete(s.Ctx, s.set("zone-a"))).To(Succeed())
	for _, name := range names {
		s.Eventually(groups(name)).ShouldNot(ContainElement("ingester"), "though another group fails: "+name)
	}
	s.Expect(s.blocked("store")).To(Equal(rolloutgroup.NotOnDeleteReason))
}
