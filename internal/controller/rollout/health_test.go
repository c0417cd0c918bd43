// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func protected() *fixture.RolloutBuilder {
	return fixture.MakeRollout("shop").BakeTime(10 * time.Minute).SelectAllChecks()
}

func (s *testEnv) check(name string) *v1alpha1.HealthCheck {
	check := &v1alpha1.HealthCheck{}
	s.Expect(s.Get(s.Ctx, s.Key(name), check)).To(Succeed())
	return check
}

// marks returns the values of the annotations that record resets.
func marks(check *v1alpha1.HealthCheck) []string {
	var all []string
	for key, value := range check.Annotations {
		if strings.HasPrefix(key, v1alpha1.ResetAnnotationPrefix) {
			all = append(all, value)
		}
	}
	return all
}

func TestCheckIsResetOnceTheTargetsAreAppliedAndNotBefore(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Healthy().ErrorAt(fixture.Noon.Add(-time.Hour)).Obj())...)
	s.rest("shop")
	s.fluxPulls()
	s.rest("shop")
	s.Expect(s.check("web").Status.Status).To(Equal(v1alpha1.HealthStatusHealthy), "the Kustomization has not applied it yet")

	s.fluxApplies()
	s.Wire.Forget()
	message, now := evidence.ResetMessage, metav1.NewTime(fixture.Noon)
	s.Wire.Fail = func(n int, _ string, _ client.Object) fixture.Fault {
		switch n {
		case 2:
			s.Expect(s.check("web").Status.Status).To(Equal(v1alpha1.HealthStatusHealthy))
		case 3: // the old status is removed, and only then the reset counts
			s.Expect(s.check("web").Status.Status).To(Equal(v1alpha1.HealthStatusPending))
			s.Expect(marks(s.check("web"))).NotTo(ContainElement("1at2026-03-02T12:00:00Z/2026-03-02T11:00:00Z"))
		}
		return fixture.Fault{}
	}
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(Equal([]string{"patch HealthCheck web", "patch HealthCheck/status web", "patch HealthCheck web"}),
		"the error that is removed is remembered first")
	got := s.check("web").Status
	got.LastChangeTime.Time = got.LastChangeTime.UTC()
	s.Expect(got).To(Equal(v1alpha1.HealthCheckStatus{
		Status: v1alpha1.HealthStatusPending, Message: &message, LastChangeTime: &now}))
	s.Expect(marks(s.check("web"))).To(Equal([]string{"1at2026-03-02T12:00:00Z/2026-03-02T11:00:00Z"}))
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying), "Healthy of before is no evidence")
}

func TestCheckThatWasJustResetCostsNothingUntilTheCacheShowsIt(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Healthy().Obj())...)
	s.rest("shop")
	s.fluxApplies()
	live := &askedLive{Reader: s.WithWatch}
	s.reconciler.APIReader = live
	s.reconciler.Client = oldChecks{s.reconciler.Client.(client.WithWatch), []v1alpha1.HealthCheck{*s.check("web")}}
	s.Wire.Forget()
	for range 3 {
		s.reconcile("shop")
		s.Expect(s.Wire.Writes()).To(Equal([]string{"patch HealthCheck/status web", "patch HealthCheck web"}))
		s.Expect(live.asked).To(Equal([]string{"*v1alpha1.Rollout shop"}), "the history is confirmed for the reset alone")
	}
}

// The writer of a check may report Unhealthy between the two writes of its reset.
func TestReportBeforeACompleteResetBlocksNothing(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Healthy().Obj())...)
	s.rest("shop")
	s.fluxApplies()
	s.checksSay(v1alpha1.HealthStatusUnhealthy)
	s.reconciler.Client = oldChecks{s.reconciler.Client.(client.WithWatch), []v1alpha1.HealthCheck{*s.check("web")}}
	s.reconcile("shop")
	s.Expect(s.check("web").Status.Status).To(Equal(v1alpha1.HealthStatusPending))
	s.reconcile("shop")
	s.Expect(s.condition("shop", v1alpha1.DeploymentBlockedCondition).Status).To(Equal(metav1.ConditionFalse))
}

func TestBakeEndsWellOnlyWhileAllChecksAreHealthy(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Obj())...)
	s.rest("shop")
	s.fluxApplies()
	s.rest("shop")
	s.checksSay(v1alpha1.HealthStatusHealthy)
	result := s.reconcile("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeInProgress))
	s.Expect(result.RequeueAfter).To(Equal(10 * time.Minute))

	s.checksSay(v1alpha1.HealthStatusPending)
	s.Pass(10 * time.Minute)
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeInProgress))
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeSucceeded))
}

func TestBakeDoesNotEndWellOnWhatACacheStillShows(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Obj(), fixture.MakeHealthCheck("gone").Obj())...)
	s.deploy("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeInProgress))
	old := []v1alpha1.HealthCheck{*s.check("gone"), *s.check("web")}
	s.Expect(s.Delete(s.Ctx, s.check("gone"))).To(Succeed())
	s.checkFails("web", "it does not answer", fixture.Noon.Add(9*time.Minute))
	s.Pass(10 * time.Minute)

	s.reads = func(c client.WithWatch) client.WithWatch { return oldChecks{c, old} }
	s.restart()
	s.reconcile("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeFailed))
	s.Expect(*s.rollout("shop").Status.History[0].BakeStatusMessage).To(Equal("HealthCheck " + s.Namespace + "/web: it does not answer"))
}

func TestFailedCheckFailsTheBakeAndIsNamed(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Obj())...)
	s.deploy("shop")
	s.Events.Take()
	s.checkFails("web", "Deployment web has no Pods", fixture.Noon)
	s.rest("shop")

	entry := s.rollout("shop").Status.History[0]
	message := "Deployment web has no Pods"
	s.Expect(entry.State()).To(Equal(v1alpha1.BakeFailed))
	s.Expect(entry.FailedHealthChecks).To(Equal([]v1alpha1.FailedHealthCheck{{Name: "web", Namespace: s.Namespace, Message: &message}}))
	failed := "HealthCheck " + s.Namespace + "/web: Deployment web has no Pods"
	s.Expect(s.Events.Take()).To(Equal([]fixture.Event{
		{On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.BakeTimeFailedReason, Message: "1.0.0: " + failed + "; " + noWayBack},
	}))

	s.release("shop", "1.1.0")
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.rest("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"), "a fix is not promoted over a failed bake by itself")
	s.pinTo("1.1.0")
	s.rest("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.1.0"))
}

func TestDeadlineFailsADeploymentThatFluxDoesNotApply(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").DeployTimeout(5*time.Minute), "1.0.0")...)
	s.reconcile("shop")
	result := s.reconcile("shop") // woken by the status write
	s.Expect(result.RequeueAfter).To(Equal(5*time.Minute + time.Nanosecond))
	s.Pass(result.RequeueAfter)
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeFailed))
	s.Expect(*s.rollout("shop").Status.History[0].BakeStatusMessage).To(Equal(
		"not applied and healthy within 5m0s: Kustomization " + s.Namespace + "/shop has not applied it; " +
			"OCIRepository " + s.Namespace + "/shop has not applied it"))
}

func TestSelectedChecksAloneAreResetAlsoInOtherNamespaces(t *testing.T) {
	rollout := protected().Obj()
	rollout.Spec.HealthCheckSelector = &v1alpha1.HealthCheckSelector{MatchLabels: map[string]string{"app": "shop"}}
	s := open(t)
	other, foreign := s.OpenNamespace(map[string]string{"of": s.Namespace}), s.OpenNamespace(nil)
	rollout.Spec.HealthCheckSelector.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"of": s.Namespace}}
	labelled := func(namespace, name, app string) client.Object {
		check := fixture.MakeHealthCheck(name).InNamespace(namespace).LetsIn(map[string]string{"of": s.Namespace}).Healthy().Obj()
		check.Labels = map[string]string{"app": app}
		return check
	}
	s.LabelNamespace("of", s.Namespace)
	s.Add(labelled(s.Namespace, "web", "shop"), labelled(s.Namespace, "unselected", "cart"),
		labelled(other, "elsewhere", "shop"), labelled(foreign, "foreign", "shop"))
	objects := shopWith(protected(), "1.0.0")
	s.Add(objects[:len(objects)-1]...)
	s.Add(rollout)
	s.rest("shop")
	s.fluxApplies()
	s.Wire.Forget()
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(ConsistOf(
		"patch HealthCheck/status web", "patch HealthCheck web",
		"patch HealthCheck/status elsewhere", "patch HealthCheck elsewhere",
	))
}

// TestHealthCheckOfAnotherNamespaceMustLetTheRolloutIn: a reset removes the writer's
// report for everyone. Until the check admits the Rollout, nothing about it is revealed.
func TestHealthCheckOfAnotherNamespaceMustLetTheRolloutIn(t *testing.T) {
	s := open(t)
	other := s.OpenNamespace(map[string]string{"of": s.Namespace})
	check := fixture.MakeHealthCheck("private").InNamespace(other).Unhealthy().Message("a secret").Obj()
	check.Labels = map[string]string{"app": "shop"}
	rollout := protected().Obj()
	rollout.Spec.HealthCheckSelector = &v1alpha1.HealthCheckSelector{
		MatchLabels:       map[string]string{"app": "shop"},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"of": s.Namespace}},
	}
	objects := shopWith(protected(), "1.0.0")
	s.Add(append(objects[:len(objects)-1], check, rollout)...)
	s.rest("shop")
	s.fluxApplies()
	s.Wire.Forget()
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.StalledCondition)).To(Equal(condition{metav1.ConditionTrue, v1alpha1.AccessDeniedReason,
		"spec.healthCheckSelector selects a HealthCheck of namespace " + other + " whose spec.accessFrom does not let in namespace " +
			s.Namespace + ": have the namespace added there, or select fewer HealthChecks"}))
	for _, write := range s.Wire.Writes() {
		s.Expect(write).NotTo(ContainSubstring("HealthCheck"))
	}
	reported, err := json.Marshal(s.rollout("shop").Status)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(string(reported)).NotTo(Or(ContainSubstring("secret"), ContainSubstring("private")))

	s.LabelNamespace("team", "shop")
	s.Expect(s.Get(s.Ctx, client.ObjectKeyFromObject(check), check)).To(Succeed())
	check.Spec.AccessFrom = fixture.MakeHealthCheck("any").LetsIn(map[string]string{"team": "shop"}).Obj().Spec.AccessFrom
	s.Expect(s.Update(s.Ctx, check)).To(Succeed())
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.StalledCondition).Status).NotTo(Equal(metav1.ConditionTrue))
	s.Expect(s.Wire.Writes()).To(ContainElement("patch HealthCheck/status private"))
}

func TestCheckThatJoinsLaterIsResetOnceAndMustProveItself(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Obj())...)
	s.deploy("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeInProgress))
	s.Add(fixture.MakeHealthCheck("late").Healthy().Obj())
	s.Wire.Forget()
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(Equal([]string{"patch Rollout/status shop", "patch HealthCheck/status late", "patch HealthCheck late"}),
		"the bake time stands still")
	s.Pass(10 * time.Minute)
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeInProgress))
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.rest("shop")
	s.Pass(10 * time.Minute)
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeSucceeded))
}

func TestWriterThatRepeatsAnAlertEverySecondCostsNoWrite(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Obj())...)
	s.deployAndBake("shop")
	s.checkFails("web", "alert", fixture.Noon.Add(time.Minute))
	s.rest("shop")
	s.Wire.Forget()
	s.Events.Take()
	for i := range 10 {
		s.checkFails("web", "alert", fixture.Noon.Add(time.Minute+time.Duration(i)*time.Second))
		s.reconcile("shop")
	}
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	s.Expect(s.Events.Take()).To(BeEmpty())
}

// TestOldErrorThatIsSaidAgainDoesNotFailTheNewPromotion simulates a writer that, after
// the reset, repeats the error from before it.
func TestOldErrorThatIsSaidAgainDoesNotFailTheNewPromotion(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int{
		"without a fault": 0,
		"although the controller died before the error was remembered": 1,
		"although the controller died before the status was reset":     2,
		"although the controller died before the reset was complete":   3,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Obj())...)
			s.deployAndBake("shop")
			s.checkFails("web", "stuck", fixture.Noon)
			s.pinTo("1.1.0")
			s.rest("shop")
			s.fluxApplies()
			s.Wire.Forget()
			s.Wire.Fail = func(write int, _ string, _ client.Object) fixture.Fault {
				return map[int]fixture.Fault{n: {Err: fixture.ErrDead, Fatal: true}}[write]
			}
			_, err := s.try("shop")
			if s.Wire.Dead() {
				s.Wire = &fixture.Wire{}
				s.restart()
			} else {
				s.Expect(err).NotTo(HaveOccurred())
			}
			s.rest("shop")
			s.checkFails("web", "stuck", fixture.Noon) // the same error
			s.rest("shop")
			s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeDeploying}))

			s.checksSay(v1alpha1.HealthStatusHealthy)
			s.rest("shop")
			s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeInProgress}))
		})
	}
}

func TestUnhealthyCheckHoldsAutomaticPromotionsOnly(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Obj())...)
	s.deployAndBake("shop")
	s.checkFails("web", "broken", fixture.Noon)
	s.release("shop", "1.1.0")
	s.rest("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"))
	s.Expect(s.condition("shop", v1alpha1.DeploymentBlockedCondition)).To(Equal(condition{
		metav1.ConditionTrue, v1alpha1.UnhealthyHealthChecksReason, "automatic promotions wait: 1 of 1 HealthCheck Unhealthy: " + s.Namespace + "/web"}))

	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.rest("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.1.0"), "recovery alone lets it go")
}

func TestPinOfARunningBakeCancelsIt(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Obj())...)
	s.deploy("shop")
	s.Events.Take()
	s.pinTo("0.9.0")
	s.rest("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{
		{ID: 2, Tag: "0.9.0", State: v1alpha1.BakeDeploying}, {ID: 1, Tag: "1.0.0", State: v1alpha1.BakeCancelled}}))
	s.Expect(*s.rollout("shop").Status.History[1].BakeStatusMessage).To(Equal("superseded by 0.9.0"))
	s.Expect(s.Events.Take()[0]).To(Equal(fixture.Event{
		On: "shop", Type: corev1.EventTypeNormal, Reason: v1alpha1.BakeTimeCancelledReason, Message: "1.0.0 was superseded by 0.9.0"}))
}
