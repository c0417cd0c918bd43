// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestFloatingTagIsReportedOnce(t *testing.T) {
	s := open(t)
	s.Add(fixture.MakeScan("shop").Found("latest").Obj())
	s.Add(fixture.MakePolicy("shop").Alphabetical("asc").Filter("^latest$", "").Latest("latest").Obj())
	s.Add(fixture.MakeRollout("shop").Obj())
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.ReleasesUpdatedCondition)).To(Equal(condition{metav1.ConditionTrue, v1alpha1.FloatingTagReason,
		"1 release known from ImagePolicy shop; ImagePolicy shop admits a single tag, latest: what is pushed to it next goes out without a decision, " +
			"and no gate or schedule can hold it; push each release under a tag of its own, and admit these tags"}))
	var reported []fixture.Event
	for _, event := range s.Events.Take() {
		if event.Reason == v1alpha1.FloatingTagReason {
			reported = append(reported, event)
		}
	}
	s.Expect(reported).To(HaveLen(1))
	s.Expect(reported[0].Type).To(Equal(corev1.EventTypeNormal))

	writes := len(s.Wire.Writes())
	s.reconcile("shop")
	s.Expect(s.Wire.Writes()).To(HaveLen(writes), "nothing is written at rest")
	s.Expect(s.Events.Take()).To(BeEmpty())
}
