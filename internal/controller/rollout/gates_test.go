// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestClosedGateHoldsAReleaseUntilItOpens(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.Add(fixture.MakeGate("approval", "shop").Closed().Obj())
	s.release("shop", "1.1.0")
	s.Events.Take()
	s.deploy("shop")

	closed := "1.1.0: not passing: RolloutGate approval"
	s.Expect(s.history("shop")).To(HaveLen(1))
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.SomeGatesBlockingReason, closed}))
	s.Expect(s.candidates("shop")).To(Equal(fixture.Releases("1.1.0")))
	s.Expect(s.rollout("shop").Status.GatedReleaseCandidates).To(BeEmpty())
	s.Expect(s.Events.Take()).To(Equal([]fixture.Event{
		{On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.SomeGatesBlockingReason, Message: closed}}))

	s.Change(fixture.MakeGate("approval", "shop").Obj(), func(o client.Object) {
		passing := true
		o.(*v1alpha1.RolloutGate).Spec.Passing = &passing
	})
	s.deploy("shop")
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}))
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition)).To(Equal(condition{
		metav1.ConditionTrue, v1alpha1.NoReleaseCandidatesReason, "no newer release to gate"}))
}

func TestGatesPassingNamesAllThatHold(t *testing.T) {
	s := openLabelledShop(t, nil)
	s.Add(fixture.MakeGate("manual", "shop").Closed().Obj(), fixture.MakeGate("qa", "shop").Allow("1.0.0").Obj(),
		fixture.MakeSchedule("nights").Deny().Obj())
	s.release("shop", "1.1.0")
	s.notifications.Take()
	s.rest("shop")
	const qa, nights = "; RolloutGate qa does not allow 1.1.0", "; RolloutSchedule nights is closed by rule mornings until 2026-03-02T13:00:00Z"
	all := "1.1.0: not passing: RolloutGate manual" + qa + nights
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.SomeGatesBlockingReason, all}))
	s.Expect(heard(s.notifications.Take(), "Rollout")).To(Equal([]string{
		"info ReleaseDetected 1.1.0: release 1.1.0 was detected", "info SomeGatesBlocking 1.1.0: " + all}), "each is reported once")

	s.Remove(&v1alpha1.RolloutSchedule{}, "nights")
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition).Message).To(Equal("1.1.0: not passing: RolloutGate manual" + qa))
	s.Expect(s.notifications.Take()).To(BeEmpty(), "the gates are the same")

	for i := range 25 {
		s.Add(fixture.MakeGate(fmt.Sprintf("m%02d", i), "shop").Closed().Obj())
	}
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition).Message).To(HaveSuffix("RolloutGate m19 and 6 more" + qa))
	s.Expect(s.notifications.Take()).NotTo(BeEmpty(), "other gates are worth an event")
}

func TestAllowedVersions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		gates []client.Object
		want  string // the version that runs in the end
		shown []v1alpha1.RolloutGateStatusSummary
	}{
		"absent filter nothing": {
			gates: []client.Object{fixture.MakeGate("a", "shop").Obj()},
			want:  "1.2.0",
			shown: []v1alpha1.RolloutGateStatusSummary{{Name: "a", Passing: yes(), Message: "lets every release through"}},
		},
		"empty let nothing through, and stay a list on the wire": {
			gates: []client.Object{fixture.MakeGate("a", "shop").Allow().Obj()},
			want:  "1.0.0",
			shown: []v1alpha1.RolloutGateStatusSummary{
				{Name: "a", Passing: yes(), AllowedVersions: []string{}, Message: "lets 0 versions through"}},
		},
		"choose the newest that every gate allows": {
			gates: []client.Object{
				fixture.MakeGate("b", "shop").Allow("1.1.0").Obj(), fixture.MakeGate("a", "shop").Allow("1.1.0", "1.2.0").Obj()},
			want: "1.1.0",
			shown: []v1alpha1.RolloutGateStatusSummary{
				{Name: "a", Passing: yes(), AllowedVersions: []string{"1.1.0", "1.2.0"}, Message: "lets 2 versions through"},
				{Name: "b", Passing: yes(), AllowedVersions: []string{"1.1.0"}, Message: "lets 1 version through"}},
		},
		"of another Rollout's gate mean nothing": {
			gates: []client.Object{fixture.MakeGate("a", "cart").Allow().Obj()},
			want:  "1.2.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
			s.deploy("shop")
			s.Add(tt.gates...)
			s.scanFinds("1.0.0", "1.1.0", "1.2.0")
			s.release("shop", "1.2.0")
			s.deploy("shop")
			s.Expect(s.carried("shop")["tag"]).To(Equal(tt.want))
			s.Expect(s.rollout("shop").Status.Gates).To(Equal(tt.shown))
		})
	}
}

func yes() *bool {
	is := true
	return &is
}

func TestPinGoesPastAClosedGate(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0", fixture.MakeGate("approval", "shop").Closed().Obj())...)
	s.deploy("shop")
	s.pinTo("1.1.0")
	s.deploy("shop")
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}))
}

func TestEveryCandidateSaysWhatHoldsIt(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").ReleaseUpdateInterval(time.Hour), "1.0.0")...)
	s.deploy("shop")
	s.Add(fixture.MakeGate("qa", "shop").Allow("1.1.0").Obj())
	s.scanFinds("1.0.0", "1.1.0", "1.2.0")
	s.release("shop", "1.2.0")
	s.rest("shop")
	next := metav1.NewTime(s.Clock.Now().Add(time.Hour)).Rfc3339Copy()
	interval := v1alpha1.CandidateHold{
		Reason:  v1alpha1.ReleaseIntervalReason,
		Message: "spec.releaseUpdateInterval allows the next promotion at " + next.UTC().Format(time.RFC3339), Until: &next,
	}
	qa := v1alpha1.CandidateHold{Reason: v1alpha1.NoAllowedVersionsReason, Message: "RolloutGate qa does not allow 1.2.0"}
	held := s.rollout("shop").Status.ReleaseCandidates
	s.Expect(held).To(HaveLen(2))
	for i, want := range [][]v1alpha1.CandidateHold{{qa, interval}, {interval}} {
		s.Expect(held[i].Holds).To(HaveLen(len(want)))
		for j := range want {
			s.Expect(held[i].Holds[j].Until.Equal(want[j].Until)).To(BeTrue())
			held[i].Holds[j].Until = want[j].Until
		}
		s.Expect(held[i].Holds).To(Equal(want))
	}
}
