// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// openBeforeTheFirstRelease opens a namespace in which Flux has pulled a revision into an
// OCIRepository without a tag, and the policy names no release.
func openBeforeTheFirstRelease(t *testing.T, revision string, rollout *fixture.RolloutBuilder) *testEnv {
	t.Helper()
	s := open(t,
		fixture.MakeScan("shop").Obj(), fixture.MakePolicy("shop").Obj(),
		fixture.MakeRepository("shop").DrivenBy("shop").Obj(), fixture.MakeKustomization("shop").Obj(), rollout.Obj(),
	)
	s.pulls("shop", revision)
	return s
}

// pulls makes Flux pull a revision into an OCIRepository.
func (s *testEnv) pulls(name, revision string) {
	s.ChangeStatus(fixture.MakeRepository(name).Obj(), func(o client.Object) {
		o.(*sourcev1.OCIRepository).Status.Artifact = fixture.Artifact(revision)
	})
}

func TestUnpromotedVersionIsShownUntilTheFirstPromotion(t *testing.T) {
	s := openBeforeTheFirstRelease(t, "latest@sha256:a", fixture.MakeRollout("shop"))
	s.rest("shop")
	const runs = "OCIRepository shop runs latest, which was never promoted: spec.ref.tag is not set, so Flux pulls latest until the first promotion; " +
		"to end this now, pin a release in spec.wantedVersion"
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{metav1.ConditionFalse, v1alpha1.NotPromotedReason, runs}))
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.NotPromotedReason, runs + "; ImagePolicy shop names no release yet"}))
	s.Expect(s.kstatus("shop")).To(Equal(status.InProgressStatus))
	s.Expect(s.rollout("shop").Status.Targets).To(Equal([]v1alpha1.TargetStatus{{
		Kind: "OCIRepository", Name: "shop", Namespace: s.Namespace, Version: "latest",
		State: v1alpha1.TargetPending, Reason: v1alpha1.TargetNotPromoted, Message: runs,
	}}))
	s.Expect(s.Events.Take()).To(ContainElement(fixture.Event{
		On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.NotPromotedReason, Message: runs}))

	s.pulls("shop", "latest@sha256:b")
	before := s.rollout("shop").ResourceVersion
	s.reconcile("shop")
	s.Expect(s.rollout("shop").ResourceVersion).To(Equal(before), "a tag that is pushed again is no other fact")

	s.release("shop", "1.0.0")
	s.deploy("shop")
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition).Reason).To(Equal(v1alpha1.TargetsAppliedReason))
	s.Expect(s.rollout("shop").Status.Targets).To(HaveLen(2))
}

func TestUnpromotedVersionDoesNotHideWhatHoldsTheFirstRelease(t *testing.T) {
	s := openBeforeTheFirstRelease(t, "latest@sha256:a", fixture.MakeRollout("shop").Environment("prod"))
	s.release("shop", "1.0.0")
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Message).To(And(HavePrefix("OCIRepository shop runs latest"), ContainSubstring("; 1.0.0 waits")))
}

func TestFirstReleaseAppliedSaysWhatRuns(t *testing.T) {
	s := openBeforeTheFirstRelease(t, "latest@sha256:a", fixture.MakeRollout("shop").FirstRelease(v1alpha1.FirstReleaseApplied))
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.StalledCondition)).To(Equal(condition{metav1.ConditionTrue, v1alpha1.FirstReleaseUnknownReason,
		"spec.firstRelease is Applied, and OCIRepository " + s.Namespace + "/shop carries no version, but runs latest@sha256:a, which was never promoted: " +
			"set the tag of what runs there, or a release in spec.wantedVersion"}))
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition).Reason).To(Equal(v1alpha1.NotPromotedReason))
	s.Expect(s.kstatus("shop")).To(Equal(status.FailedStatus))
}

func TestFirstReleaseAppliedAdoptsTheTagLatest(t *testing.T) {
	s := open(t,
		fixture.MakeScan("shop").Obj(), fixture.MakePolicy("shop").Obj(), fixture.MakeRepository("shop").DrivenBy("shop").Tag("latest").Obj(),
		fixture.MakeRollout("shop").FirstRelease(v1alpha1.FirstReleaseApplied).Obj(),
	)
	s.pulls("shop", "latest@sha256:a")
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition).Reason).NotTo(Equal(v1alpha1.NotPromotedReason))
}
