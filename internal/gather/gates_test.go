// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// Who may not list the schedules of the cluster sees in the namespace what their gates show.
// To everybody else, a gate without its schedule is left behind.
func TestGateOfAScheduleCountsForWhoMayNotListSchedules(t *testing.T) {
	g := NewWithT(t)
	gate := fixture.MakeGate(ScheduleGatePrefix+"nights-1", "shop").Closed().Obj()
	gate.Labels = map[string]string{v1alpha1.ScheduleKindLabel: clusterScheduleKind, v1alpha1.ScheduleNameLabel: "nights"}
	gate.OwnerReferences = []metav1.OwnerReference{{UID: "nights", Kind: clusterScheduleKind, Name: "nights", Controller: new(true)}}
	reader := readerOf(t, gate)
	for kind, want := range map[string][]promotion.Window{
		"":           nil,
		scheduleKind: nil,
		clusterScheduleKind: {{
			Schedule: "ClusterRolloutSchedule nights", Message: "closed, as RolloutGate schedule-gate-nights-1 shows",
		}},
	} {
		s := Gatherer{Client: reader, Live: reader, UnreadSchedules: []string{kind}}.Gather(t.Context(), running(), fixture.Noon)
		g.Expect(s.Gates.Gates).To(BeEmpty(), kind)
		g.Expect(s.Gates.Schedules).To(Equal(want), kind)
		g.Expect(s.Gates.Copies).To(HaveLen(len(want)), kind)
	}
}
