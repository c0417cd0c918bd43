// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// openFailing opens an env in which 1.0.0 has succeeded, and 1.1.0 is applied.
func openFailing(t *testing.T, changes ...func(*v1alpha1.RolloutRollback)) *testEnv {
	t.Helper()
	rollout := protected().DeployTimeout(5 * time.Minute).RollsBack(changes...)
	s := open(t, shopWith(rollout, "1.0.0", fixture.MakeHealthCheck("web").Healthy().Obj())...)
	s.deploy("shop")
	s.Pass(11 * time.Minute)
	s.deploy("shop")
	s.release("shop", "1.1.0")
	s.rest("shop")
	s.fluxApplies()
	s.rest("shop")
	s.notifications.Take()
	s.Events.Take()
	s.Wire.Forget()
	return s
}

// reasonsOf returns the reasons of events on the Rollout.
func reasonsOf(events []fixture.Event) []string {
	var all []string
	for _, e := range events {
		if e.On == "shop" {
			all = append(all, e.Reason)
		}
	}
	return all
}

func TestFailingReleaseIsRolledBack(t *testing.T) {
	s := openFailing(t)
	s.checkFails("web", "down", s.Clock.Now())
	s.rest("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{
		{3, "1.0.0", v1alpha1.BakeDeploying}, {2, "1.1.0", v1alpha1.BakeFailed}, {1, "1.0.0", v1alpha1.BakeSucceeded},
	}))
	history := s.rollout("shop").Status.History
	s.Expect(history[0].Rollback).To(Equal(&v1alpha1.RollbackRecord{From: "1.1.0", FromID: 2, ToID: 1}))
	message := "rolled back from 1.1.0 (#2): HealthCheck " + s.Namespace + "/web: down"
	s.Expect(*history[0].Message).To(Equal(message))
	s.Expect(history[1].Cause).To(Equal(v1alpha1.CauseHealthCheckFailed))
	s.Expect(history[1].RollbackDue.Time).To(BeTemporally("==", history[1].BakeEndTime.Time))
	s.Expect(s.Wire.Writes()).To(Equal([]string{
		"patch Rollout/status shop", "patch Rollout/status shop", "patch Kustomization shop", "patch OCIRepository shop",
		"create RolloutGate shop-holds", // so that what failed does not look like what may go
	}), "a rollback is one promotion")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"))
	s.Expect(s.condition("shop", v1alpha1.RolledBackCondition)).To(Equal(condition{
		metav1.ConditionTrue, v1alpha1.AutomaticRollbackReason, "1.0.0, " + message,
	}))
	s.Expect(s.condition("shop", v1alpha1.BakeFailureDisabledCondition).Reason).To(Equal(v1alpha1.PreviousBakeFailedReason))
	s.Expect(reasonsOf(s.Events.Take())).To(Equal([]string{v1alpha1.BakeTimeFailedReason, v1alpha1.BakeTimeDeployingReason}))

	s.deploy("shop")
	s.Pass(11 * time.Minute)
	s.deploy("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeSucceeded))
	s.Wire.Forget()
	s.Pass(24 * time.Hour)
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(BeEmpty(), "the release that has failed is not taken again")

	s.release("shop", "1.2.0")
	s.rest("shop")
	s.Expect(s.history("shop")[0]).To(Equal(promoted{4, "1.2.0", v1alpha1.BakeDeploying}), "a fix needs nobody")
	s.Expect(s.condition("shop", v1alpha1.RolledBackCondition)).To(Equal(condition{}))
	s.Expect(s.condition("shop", v1alpha1.BakeFailureDisabledCondition).Status).To(Equal(metav1.ConditionFalse))
}

func TestRollbackIsAnnouncedAsAnError(t *testing.T) {
	s := openFailing(t)
	s.checkFails("web", "down", s.Clock.Now())
	s.rest("shop")
	for _, e := range s.notifications.Take() {
		if e.InvolvedObject.Kind == v1alpha1.RolloutKind && e.Reason == v1alpha1.RolledBackReason {
			s.Expect(e.Severity).To(Equal("error"))
			s.Expect(e.Message).To(HavePrefix("rolled back to 1.0.0 (rolled back from 1.1.0 (#2): "))
			s.Expect(e.Metadata).To(And(
				HaveKeyWithValue(metaCause, "HealthCheckFailed"), HaveKeyWithValue(metaFrom, "1.1.0"), HaveKeyWithValue(metaTo, "1.0.0")))
			return
		}
	}
	t.Fatal("no event")
}

func TestRollbackThatWaitsSaysUntilWhen(t *testing.T) {
	s := openFailing(t, func(r *v1alpha1.RolloutRollback) { r.Delay = &metav1.Duration{Duration: 10 * time.Minute} })
	s.checkFails("web", "down", s.Clock.Now())
	s.rest("shop")
	waits := "goes back to 1.0.0 at 2026-03-02T12:21:00Z, unless a user retries or pins a version before"
	s.Expect(s.condition("shop", v1alpha1.RolledBackCondition)).To(Equal(condition{metav1.ConditionFalse, v1alpha1.RollbackDelayedReason, waits}))
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Message).To(HavePrefix("1.1.0: HealthCheck " + s.Namespace + "/web: down; " + waits))
	s.Expect(s.reconcile("shop").RequeueAfter).To(Equal(10 * time.Minute))
	events := s.Events.Take()
	s.Expect(reasonsOf(events)).To(Equal([]string{v1alpha1.BakeTimeFailedReason}))
	s.Expect(events[0].Message).To(HaveSuffix(waits))

	s.Pass(10 * time.Minute)
	s.rest("shop")
	s.Expect(s.history("shop")[0].Tag).To(Equal("1.0.0"))
}

func TestRollbackThatIsNotPossibleIsSaidOnce(t *testing.T) {
	s := openFailing(t, func(r *v1alpha1.RolloutRollback) { r.NotBelow = "1.0.5" })
	s.checkFails("web", "down", s.Clock.Now())
	s.rest("shop")
	why := "1.0.0 succeeded last, and is older than 1.0.5, which spec.rollback.notBelow names: deploy a fix, or pin a version"
	s.Expect(s.condition("shop", v1alpha1.RolledBackCondition)).To(Equal(condition{metav1.ConditionFalse, v1alpha1.BelowRollbackFloorReason, why}))
	s.Expect(reasonsOf(s.Events.Take())).To(Equal([]string{v1alpha1.BakeTimeFailedReason, v1alpha1.RollbackNotPossibleReason}))
	s.Pass(time.Hour)
	s.rest("shop")
	s.Expect(s.Events.Take()).To(BeEmpty())
	s.Expect(s.history("shop")[0]).To(Equal(promoted{2, "1.1.0", v1alpha1.BakeFailed}))
}

func TestRollbackThatDoesNotHelpIsOverdueOnce(t *testing.T) {
	s := openFailing(t)
	s.checkFails("web", "down", s.Clock.Now())
	s.rest("shop")
	s.fluxApplies()
	s.rest("shop")
	s.checksSay(v1alpha1.HealthStatusUnhealthy)
	s.rest("shop")
	s.Events.Take()

	s.Pass(5*time.Minute + time.Second)
	s.rest("shop")
	overdue := s.condition("shop", v1alpha1.RolledBackCondition)
	s.Expect(overdue).To(Equal(condition{metav1.ConditionTrue, v1alpha1.RollbackOverdueReason,
		"the rollback to 1.0.0 has been overdue since 2026-03-02T12:16:00Z: applied; waiting for HealthCheck " + s.Namespace + "/web; " +
			"Unhealthy: HealthCheck " + s.Namespace + "/web; deploy a fix with unblock-failed, or pin a version"}))
	s.Expect(s.condition("shop", v1alpha1.StalledCondition)).To(Equal(overdue))
	s.Expect(reasonsOf(s.Events.Take())).To(Equal([]string{v1alpha1.RollbackOverdueReason}))
	s.Pass(time.Hour)
	s.rest("shop")
	s.Expect(s.Events.Take()).To(BeEmpty())
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying), "a rollback never fails")

	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.StalledCondition)).To(Equal(condition{}))
	s.Pass(11 * time.Minute)
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeSucceeded))
}
