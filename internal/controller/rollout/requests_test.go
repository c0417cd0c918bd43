// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// ask annotates the Rollout as users and dashboards do.
func (s *testEnv) ask(annotations ...string) {
	s.Change(fixture.MakeRollout("shop").Obj(), func(o client.Object) {
		for i := 0; i < len(annotations); i += 2 {
			metav1.SetMetaDataAnnotation(o.(*v1alpha1.Rollout).GetObjectMeta().(*metav1.ObjectMeta), annotations[i], annotations[i+1])
		}
	})
}

// asked returns the remaining annotations of the Rollout.
func (s *testEnv) asked() map[string]string { return s.rollout("shop").Annotations }

func baked() *fixture.RolloutBuilder {
	return fixture.MakeRollout("shop").BakeTime(10 * time.Minute).SelectAllChecks()
}

// fail lets the current release be applied and become unhealthy.
func (s *testEnv) fail() {
	s.rest("shop")
	s.fluxApplies()
	s.rest("shop")
	s.checkFails("smoke", "it does not answer", s.Clock.Now())
	s.rest("shop")
	s.Expect(s.rollout("shop").Current().State()).To(Equal(v1alpha1.BakeFailed))
}

func TestForcedReleaseIsPromotedOnceAndAutomationComesBack(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.1.0", fixture.MakeGate("manual", "shop").Closed().Obj())...)
	s.deploy("shop")
	s.scanFinds("1.0.0", "1.1.0")
	s.rest("shop")
	s.ask(v1alpha1.ForceDeployAnnotation, "1.0.0", v1alpha1.DeployUserAnnotation, "ann", v1alpha1.DeployMessageAnnotation, "the shop is down")
	s.deploy("shop")

	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"))
	s.Expect(s.asked()).To(BeEmpty())
	entry := s.rollout("shop").Current()
	s.Expect(*entry.Message).To(Equal("the shop is down"))
	s.Expect(*entry.TriggeredBy).To(Equal(v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredByUser, Name: "ann", Verified: true}))

	s.Remove(&v1alpha1.RolloutGate{}, "manual")
	s.deploy("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.1.0"))
	s.Expect(s.rollout("shop").Current().TriggeredBy.Kind).To(Equal(v1alpha1.TriggeredBySystem))
}

func TestForceOfTheCurrentVersionIsAnswered(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.Events.Take()
	const answer = "rollout.kuberik.com/force-deploy names 1.0.0, which is deployed already"
	for range 2 { // for each request
		s.ask(v1alpha1.ForceDeployAnnotation, "1.0.0")
		s.rest("shop")
		s.Expect(s.asked()).To(BeEmpty())
		s.Expect(s.Events.Take()).To(Equal([]fixture.Event{
			{On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.ForceDeployNotNeededReason, Message: answer}}))
		s.Expect(s.condition("shop", v1alpha1.RequestAcceptedCondition)).To(Equal(
			condition{metav1.ConditionFalse, v1alpha1.ForceDeployNotNeededReason, answer}))
		s.Expect(s.history("shop")).To(HaveLen(1))
	}
	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.Expect(s.condition("shop", v1alpha1.RequestAcceptedCondition)).To(BeZero(), "the next promotion ends the answer")
}

func TestForceOfAnUnknownReleaseIsHeldAndSaidOnce(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.Events.Take()
	s.ask(v1alpha1.ForceDeployAnnotation, "2.0.0")
	s.rest("shop")
	said := `rollout.kuberik.com/force-deploy names "2.0.0", which is not a known release: correct or remove it, or set spec.wantedVersion`
	s.Expect(s.condition("shop", v1alpha1.StalledCondition)).To(Equal(condition{metav1.ConditionTrue, v1alpha1.UnknownReleaseReason, said}))
	s.Expect(s.Events.Take()).To(Equal([]fixture.Event{{On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.UnknownReleaseReason, Message: said}}))
	s.release("shop", "1.1.0")
	s.rest("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"), "a user wants another version")
	s.Expect(s.Events.Take()).To(BeEmpty())

	s.release("shop", "2.0.0")
	s.deploy("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("2.0.0"), "it is known now")
	s.Expect(s.asked()).To(BeEmpty())
}

func TestBypassIsUsedUpByItsReleaseOnly(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.Add(fixture.MakeGate("manual", "shop").Closed().Obj())
	s.ask(v1alpha1.BypassGatesAnnotation, "1.2.0")
	s.release("shop", "1.1.0")
	s.rest("shop")
	s.Expect(s.history("shop")).To(HaveLen(1))
	s.Expect(s.condition("shop", v1alpha1.RequestAcceptedCondition).Reason).To(Equal(v1alpha1.NoSuchCandidateReason))

	s.pinTo("1.1.0")
	s.deploy("shop")
	s.pin("shop", nil)
	s.rest("shop")
	s.Expect(s.asked()).To(HaveKeyWithValue(v1alpha1.BypassGatesAnnotation, "1.2.0"))

	s.scanFinds("1.0.0", "1.1.0", "1.2.0", "1.3.0")
	s.Events.Take()
	s.release("shop", "1.3.0")
	s.rest("shop")
	s.Expect(s.Events.Take()).To(ContainElement(HaveField("Message", ContainSubstring("gates bypassed manually"))))
	s.deploy("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.2.0"))
	s.Expect(s.asked()).To(BeEmpty())
	s.Expect(s.condition("shop", v1alpha1.RequestAcceptedCondition)).To(BeZero())
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition).Reason).To(Equal(v1alpha1.SomeGatesBlockingReason), "1.3.0 is gated as before")
}

func TestStatusSaysThatACandidateIsBypassed(t *testing.T) {
	s := open(t, shopWith(baked(), "1.0.0", fixture.MakeHealthCheck("smoke").Obj())...)
	s.deploy("shop")
	s.Pass(10 * time.Minute)
	s.rest("shop")
	s.checksSay(v1alpha1.HealthStatusUnhealthy)
	s.Add(fixture.MakeGate("manual", "shop").Closed().Obj())
	s.ask(v1alpha1.BypassGatesAnnotation, "1.1.0")
	s.scanFinds("1.0.0", "1.1.0", "1.2.0")
	s.Events.Take()
	s.release("shop", "1.2.0")
	s.rest("shop")
	s.Expect(s.Events.Take()).To(ContainElement(HaveField("Reason", v1alpha1.GatesBypassedReason)))
	s.Expect(s.history("shop")).To(HaveLen(1), "a bypass does not lift bad health")
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition)).To(Equal(condition{
		metav1.ConditionTrue, v1alpha1.GatesBypassedReason, "rollout.kuberik.com/bypass-gates lets 1.1.0 past every gate"}))
	s.Expect(s.rollout("shop").Status.Gates[0].BypassGates).To(BeTrue())
	s.Expect(s.rollout("shop").Status.GatedReleaseCandidates).To(Equal(fixture.Releases("1.1.0")))

	s.Change(fixture.MakeRollout("shop").Obj(), func(o client.Object) { o.SetAnnotations(nil) })
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition).Reason).To(Equal(v1alpha1.SomeGatesBlockingReason))
	s.Expect(s.rollout("shop").Status.Gates[0].BypassGates).To(BeFalse())
}

func TestFixIsPromotedAfterItsUnhealthyPredecessor(t *testing.T) {
	s := open(t, shopWith(baked(), "1.0.0", fixture.MakeHealthCheck("smoke").Obj())...)
	s.deploy("shop")
	s.Pass(10 * time.Minute)
	s.rest("shop")
	s.release("shop", "1.1.0")
	s.fail()
	s.release("shop", "1.1.1")
	s.rest("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.1.0"))
	s.Expect(s.condition("shop", v1alpha1.DeploymentBlockedCondition).Status).To(Equal(metav1.ConditionTrue))

	s.ask(v1alpha1.UnblockFailedAnnotation, "true")
	s.rest("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.1.1"))
	s.Expect(s.asked()).To(BeEmpty())
	s.Expect(s.condition("shop", v1alpha1.BakeFailureDisabledCondition)).To(Equal(condition{
		metav1.ConditionTrue, v1alpha1.PreviousBakeFailedReason, "failure detection is off for 1.1.1: it replaces 1.1.0, which failed"}))

	s.fluxApplies()
	s.rest("shop")
	s.checkFails("smoke", "it does not answer", s.Clock.Now())
	s.rest("shop")
	s.Expect(s.rollout("shop").Current().State()).To(Equal(v1alpha1.BakeDeploying), "the way out cannot fail")
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.rest("shop")
	s.Pass(10 * time.Minute)
	s.rest("shop")
	s.Expect(s.rollout("shop").Current().State()).To(Equal(v1alpha1.BakeSucceeded))
	s.release("shop", "1.2.0")
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.BakeFailureDisabledCondition).Reason).To(Equal(v1alpha1.NormalReason))
}

func TestRetryJudgesTheSameEntryAgain(t *testing.T) {
	s := open(t, shopWith(baked().DeployTimeout(5*time.Minute), "1.0.0", fixture.MakeHealthCheck("smoke").Obj())...)
	s.fail()
	before := s.rollout("shop").Current()
	for _, value := range []string{"", "once more"} {
		s.Events.Take()
		s.Pass(time.Hour) // beyond the first deadline
		s.ask(v1alpha1.RetryAnnotation, value)
		s.reconcile("shop")
		s.Expect(s.asked()).To(BeEmpty())
		s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Reason).To(Equal(v1alpha1.BakeTimeRetryingReason))
		s.Expect(s.Events.Take()).To(ContainElement(fixture.Event{
			On: "shop", Type: corev1.EventTypeNormal, Reason: v1alpha1.RetryRequestedReason, Message: "1.0.0: a retry was requested"}))
		entry := s.rollout("shop").Current()
		s.Expect(entry.State()).To(Equal(v1alpha1.BakeDeploying))
		s.Expect(entry.FailedHealthChecks).To(BeEmpty())
		s.Expect(entry.BakeEndTime).To(BeNil())
		s.Expect(entry.LastRetryTimestamp.Time).To(BeTemporally("==", s.Clock.Now()))
		s.Expect(entry.ID).To(Equal(before.ID))
		s.Expect(entry.Timestamp).To(Equal(before.Timestamp))

		s.rest("shop")
		s.checkFails("smoke", "it does not answer", s.Clock.Now())
		s.rest("shop")
		s.Expect(s.rollout("shop").Current().State()).To(Equal(v1alpha1.BakeFailed), "a new failure counts")
	}
	s.ask(v1alpha1.RetryAnnotation, "")
	s.deploy("shop")
	s.Pass(10 * time.Minute)
	s.rest("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
	s.Expect(s.rollout("shop").Current().LastRetryTimestamp).NotTo(BeNil(), "others use it as their cutoff")
}

func TestRetryWithNothingToRetryIsAnswered(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.Events.Take()
	s.ask(v1alpha1.RetryAnnotation, "")
	s.rest("shop")
	const answer = "there is nothing to retry: the promotion of 1.0.0 has not failed"
	s.Expect(s.asked()).To(BeEmpty())
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
	s.Expect(s.Events.Take()).To(Equal([]fixture.Event{
		{On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.RetryNotNeededReason, Message: answer}}))
	s.Expect(s.condition("shop", v1alpha1.RequestAcceptedCondition)).To(Equal(condition{metav1.ConditionFalse, v1alpha1.RetryNotNeededReason, answer}))
}

func TestRequestThatIsMadeMeanwhileIsNotLost(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.scanFinds("1.0.0", "1.1.0", "1.2.0")
	s.Add(fixture.MakeGate("manual", "shop").Closed().Obj())
	s.release("shop", "1.2.0")
	s.rest("shop")
	s.ask(v1alpha1.ForceDeployAnnotation, "1.1.0")
	s.Wire.Fail = func(_ int, write string, o client.Object) fixture.Fault {
		if write == "patch Rollout shop" { // just before the annotation is removed
			s.Wire.Fail = nil
			s.ask(v1alpha1.ForceDeployAnnotation, "1.2.0")
		}
		return fixture.Fault{}
	}
	s.deploy("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{
		{ID: 3, Tag: "1.2.0", State: v1alpha1.BakeSucceeded},
		{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeCancelled},
		{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded},
	}))
	s.Expect(s.asked()).To(BeEmpty())
}

func TestReleasesAreTakenOneAfterAnother(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").Strategy(v1alpha1.ReleaseNext), "1.0.0")...)
	s.deploy("shop")
	s.scanFinds("1.0.0", "1.1.0", "1.2.0", "1.3.0")
	s.release("shop", "1.3.0")
	for range 4 {
		s.deploy("shop")
	}
	s.Expect(s.history("shop")).To(Equal([]promoted{
		{ID: 4, Tag: "1.3.0", State: v1alpha1.BakeSucceeded},
		{ID: 3, Tag: "1.2.0", State: v1alpha1.BakeSucceeded},
		{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded},
		{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded},
	}))
}

func TestSelectorWithoutASelectorSaysThatItSelectsNothing(t *testing.T) {
	rollout := fixture.MakeRollout("shop").Obj()
	rollout.Spec.HealthCheckSelector = &v1alpha1.HealthCheckSelector{NamespaceSelector: &metav1.LabelSelector{}}
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0", fixture.MakeHealthCheck("smoke").Unhealthy().Obj())...)
	s.Change(fixture.MakeRollout("shop").Obj(), func(o client.Object) { o.(*v1alpha1.Rollout).Spec = rollout.Spec })
	s.deploy("shop")
	s.Expect(s.condition("shop", v1alpha1.DeploymentBlockedCondition).Message).To(Equal(
		"spec.healthCheckSelector selects no HealthCheck at all: give it a selector or matchLabels, empty for all"))
}

func TestAnnotationThatCannotBeRemovedDoesNotKeepTheReleaseFromItsTargets(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.ask(v1alpha1.DeployMessageAnnotation, "hello")
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		if write == "patch Rollout shop" {
			return fixture.Fault{Err: apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("rollouts").GroupResource(), "shop", errors.New("no"))}
		}
		return fixture.Fault{}
	}
	s.release("shop", "1.1.0")
	_, err := s.try("shop")
	s.Expect(err).To(MatchError(ContainSubstring("remove annotations that are used up")))
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.1.0"))
	s.Expect(s.asked()).To(HaveKey(v1alpha1.DeployMessageAnnotation))

	s.Wire.Fail = nil
	s.deploy("shop")
	s.Expect(s.history("shop")).To(HaveLen(2))
}
