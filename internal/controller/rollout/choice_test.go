// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/write"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestPinHoldsUntilItIsRemoved(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.1.0")...)
	s.deploy("shop")
	s.pinTo("1.0.0")
	s.deploy("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"), "a pin to an older version is a rollback")

	s.release("shop", "1.2.0")
	s.deploy("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"))
	s.Expect(s.candidates("shop")).To(Equal(fixture.Releases("1.2.0", "1.1.0")))

	s.pin("shop", nil)
	s.deploy("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{
		{ID: 3, Tag: "1.2.0", State: v1alpha1.BakeSucceeded},
		{ID: 2, Tag: "1.0.0", State: v1alpha1.BakeSucceeded},
		{ID: 1, Tag: "1.1.0", State: v1alpha1.BakeSucceeded},
	}))
}

func TestEmptyPinIsNone(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").Pin(""), "1.0.0")...)
	s.deploy("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
}

func TestPinnedBuildOutsideOfThePolicyIsLeftForNewerReleases(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.pinTo("hotfix-42")
	s.deploy("shop")
	s.pin("shop", nil)
	s.deploy("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("hotfix-42"))

	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.1.0"))
}

func TestPolicyGoingBackDowngradesNothing(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.1.0")...)
	s.deploy("shop")
	s.release("shop", "1.0.0")
	s.deploy("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}}))
}

func TestReleasesComeNoFasterThanTheInterval(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").ReleaseUpdateInterval(time.Hour), "1.0.0")...)
	s.deploy("shop")
	s.Pass(10 * time.Minute)
	s.release("shop", "1.1.0")
	result := s.reconcile("shop")
	s.Expect(result.RequeueAfter).To(Equal(50 * time.Minute))
	s.release("shop", "1.2.0")
	s.deploy("shop")
	s.Expect(s.history("shop")).To(HaveLen(1))

	s.Pass(50 * time.Minute)
	s.deploy("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{
		{ID: 2, Tag: "1.2.0", State: v1alpha1.BakeSucceeded},
		{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded},
	}))
}

func TestHistoryIsCutAndIdsGoOn(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").HistoryLimit(2), "1.0.0")...)
	s.deploy("shop")
	for _, tag := range []string{"1.1.0", "1.2.0", "1.3.0"} {
		s.release("shop", tag)
		s.deploy("shop")
	}
	s.Expect(s.history("shop")).To(Equal([]promoted{
		{ID: 4, Tag: "1.3.0", State: v1alpha1.BakeSucceeded},
		{ID: 3, Tag: "1.2.0", State: v1alpha1.BakeSucceeded},
	}))
}

func TestLostHistoryIsTakenOverFromTheTargets(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.Add(fixture.MakeGate("approval", "shop").Closed().Obj())
	s.release("shop", "1.1.0")
	s.loseStatus()
	s.Events.Take()
	s.restart()
	s.deploy("shop")

	s.Expect(s.history("shop")).To(Equal([]promoted{
		{ID: fixture.Noon.Unix(), Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
	s.Expect(*s.rollout("shop").Status.History[0].Message).To(Equal("the history was lost; the targets carry this version"))
	s.Expect(s.Events.Take()[0].Reason).To(Equal(v1alpha1.ReleaseAdoptedReason))
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"), "the gate holds 1.1.0, although this history is new")
}

func TestLostHistoryOfTargetsThatDisagreeWaitsForAUser(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.writeVariableAsOurs("0.9.0")
	s.loseStatus()
	s.restart()
	s.Wire.Forget()
	s.rest("shop")

	s.Expect(s.Wire.Writes()).To(Equal([]string{"patch Rollout/status shop"}))
	s.Expect(s.condition("shop", v1alpha1.StalledCondition)).To(Equal(condition{
		metav1.ConditionTrue, v1alpha1.TargetsDisagreeReason,
		"the history is lost and the targets carry different versions (0.9.0, 1.0.0): set spec.wantedVersion to the right one"}))
	s.Expect(s.kstatus("shop")).To(Equal(status.FailedStatus))

	s.pinTo("1.0.0")
	s.deploy("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{
		{ID: fixture.Noon.Unix(), Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
	s.Expect(s.carried("shop")).To(Equal(map[string]string{"tag": "1.0.0", "VERSION": "1.0.0", "TIER": "gold"}))
}

// loseStatus simulates a backup that was restored without status.
func (s *testEnv) loseStatus() {
	s.ChangeStatus(fixture.MakeRollout("shop").Obj(), func(o client.Object) {
		o.(*v1alpha1.Rollout).Status = v1alpha1.RolloutStatus{ObservedGeneration: -1}
	})
}

// writeVariableAsOurs changes VERSION of the Kustomization shop under the field manager
// of the controller.
func (s *testEnv) writeVariableAsOurs(value string) {
	k := fixture.MakeKustomization("shop").Obj()
	s.Expect(s.Get(s.Ctx, s.Key("shop"), k)).To(Succeed())
	k.Spec.PostBuild.Substitute["VERSION"] = value
	s.Expect(s.Update(s.Ctx, k, client.FieldOwner(write.FieldManager))).To(Succeed())
}

func withoutTimes(status v1alpha1.RolloutStatus) map[string]any {
	conditions := map[string]condition{}
	for _, c := range status.Conditions {
		conditions[c.Type] = condition{c.Status, c.Reason, c.Message}
	}
	status.Conditions = nil
	return map[string]any{"status": status, "conditions": conditions}
}

func TestEachTransitionIsReportedOnce(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").BakeTime(10*time.Minute), "1.0.0")...)
	for range 3 {
		s.deployAndBake("shop")
	}
	s.Expect(s.Events.Take()).To(Equal([]fixture.Event{
		{On: "shop", Type: corev1.EventTypeNormal, Reason: v1alpha1.BakeTimeDeployingReason,
			Message: "promoted 1.0.0 (the first release of this environment, from ImagePolicy shop); waiting for Flux to apply 1.0.0 to 2 targets"},
		{On: "shop", Type: corev1.EventTypeNormal, Reason: v1alpha1.BakeTimeStartedReason,
			Message: "1.0.0: applied; baking for 10m0s, until 2026-03-02T12:10:00Z"},
		{On: "shop", Type: corev1.EventTypeNormal, Reason: v1alpha1.BakeTimePassedReason,
			Message: "1.0.0: applied for the bake time of 10m0s"},
	}))
}

func TestRequestToReconcileIsAcknowledged(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.Change(fixture.MakeRollout("shop").Obj(), func(o client.Object) {
		o.SetAnnotations(map[string]string{v1alpha1.ReconcileRequestAnnotation: "now"})
	})
	s.rest("shop")
	s.Expect(s.rollout("shop").Status.LastHandledReconcileAt).To(Equal("now"))
}

func TestCandidatesStayWhileTheImagePolicyIsGone(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0", fixture.MakeGate("manual", "shop").Closed().Obj())...)
	s.deploy("shop")
	s.setRange(">=1.0.0-0")
	for _, tag := range []string{"1.1.0-rc.1", "1.1.0"} {
		s.release("shop", tag)
		s.rest("shop")
	}
	s.setRange(">=1.0.0") // the prerelease is not a candidate any more
	s.rest("shop")
	s.Expect(s.candidates("shop")).To(Equal(fixture.Releases("1.1.0")))
	s.Remove(&imagev1.ImagePolicy{}, "shop")
	s.rest("shop")
	s.Expect(s.ready().Reason).To(Equal(v1alpha1.RolloutFailedReason))
	s.Expect(s.candidates("shop")).To(Equal(fixture.Releases("1.1.0")))
}
