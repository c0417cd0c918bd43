// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// charted returns a Rollout, what it drives, and a HelmRelease with the chart in the
// OCIRepository.
func charted(rollout *fixture.RolloutBuilder) []client.Object {
	return shopWith(rollout, "1.0.0", fixture.MakeHelmRelease("shop").Obj())
}

// helmDeploys simulates a helm-controller that has deployed what was pulled.
func (s *testEnv) helmDeploys(name string) {
	s.helmTries(name, func(h *helmv2.HelmRelease, made *helmv2.HelmRelease) {
		h.Status.ObservedGeneration, h.Status.History = h.Generation, made.Status.History
		helmSays(h, metav1.ConditionTrue, helmv2.UpgradeSucceededReason, "Helm upgrade succeeded")
	})
}

// helmFails simulates a helm-controller that could not deploy it.
func (s *testEnv) helmFails(reason, message string) {
	s.helmTries("shop", func(h *helmv2.HelmRelease, made *helmv2.HelmRelease) {
		h.Status.History = made.Status.History
		h.Status.History[0].Status = "failed"
		helmSays(h, metav1.ConditionFalse, reason, message)
	})
}

func (s *testEnv) helmTries(name string, end func(h, made *helmv2.HelmRelease)) {
	source := &sourcev1.OCIRepository{}
	s.Expect(s.Get(s.Ctx, s.Key(name), source)).To(Succeed())
	made := fixture.MakeHelmRelease(name).Deployed(source.Status.Artifact.Revision).Obj()
	s.ChangeStatus(&helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(o client.Object) {
		h := o.(*helmv2.HelmRelease)
		h.Status.LastAttemptedGeneration = h.Generation
		h.Status.LastAttemptedRevision = made.Status.LastAttemptedRevision
		h.Status.LastAttemptedRevisionDigest = made.Status.LastAttemptedRevisionDigest
		end(h, made)
	})
}

func helmSays(h *helmv2.HelmRelease, ready metav1.ConditionStatus, reason, message string) {
	apimeta.SetStatusCondition(&h.Status.Conditions, metav1.Condition{
		Type: meta.ReadyCondition, Status: ready, Reason: reason, Message: message, ObservedGeneration: h.Generation,
	})
}

func TestBakeBeginsOnceHelmIsDone(t *testing.T) {
	s := open(t, charted(fixture.MakeRollout("shop").BakeTime(10*time.Minute))...)
	s.rest("shop")
	s.fluxApplies()
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying), "Helm has not begun")
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.TargetsPendingReason, "waiting for Flux to apply 1.0.0 to 3 targets"}))
	s.helmDeploys("shop")
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeInProgress))
	s.Expect(s.rollout("shop").Status.Targets[0]).To(Equal(v1alpha1.TargetStatus{
		Kind: "HelmRelease", Namespace: s.Namespace, Name: "shop", Version: "1.0.0", State: v1alpha1.TargetApplied}))
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
		metav1.ConditionTrue, v1alpha1.TargetsAppliedReason, "applied 1.0.0 to 3 targets"}))
	for _, write := range s.Wire.Writes() {
		s.Expect(write).NotTo(ContainSubstring("HelmRelease"), "it is only read")
	}
}

// Flux can make the OCIRepository of the template of a chart. Then only the status of the
// HelmRelease names it.
func TestReleaseOfAGeneratedChartIsWaitedFor(t *testing.T) {
	release := fixture.MakeHelmRelease("shop").FromChart("shop").Obj()
	s := open(t, shopWith(fixture.MakeRollout("shop").BakeTime(10*time.Minute), "1.0.0", release)...)
	s.ChangeStatus(&helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, func(o client.Object) {
		o.(*helmv2.HelmRelease).Status.HelmChart = sourcev1.OCIRepositoryKind + "/" + s.Namespace + "/shop"
	})
	s.rest("shop")
	s.fluxApplies()
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.TargetsPendingReason, "waiting for Flux to apply 1.0.0 to 3 targets"}))
	s.helmDeploys("shop")
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeInProgress))
}

func TestUpgradeThatFailsIsReportedInHelmsWords(t *testing.T) {
	s := open(t, charted(fixture.MakeRollout("shop").DeployTimeout(10*time.Minute))...)
	s.rest("shop")
	s.fluxApplies()
	s.helmFails(helmv2.UpgradeFailedReason, "Helm upgrade failed for release shop with chart shop@1.0.0: no such field")
	s.rest("shop")
	const said = "HelmRelease shop: Helm upgrade failed for release shop with chart shop@1.0.0: no such field"
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.TargetFailedReason, said}))
	s.Expect(s.Events.Take()[1]).To(Equal(fixture.Event{
		On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.TargetFailedReason, Message: said}))

	s.helmFails(helmv2.RollbackSucceededReason, "Helm rollback to previous release shop.v1 succeeded")
	s.Pass(10*time.Minute + time.Second)
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeFailed))
	s.Expect(*s.rollout("shop").Status.History[0].BakeStatusMessage).To(ContainSubstring("Helm rollback to previous release shop.v1 succeeded"))
}

func TestBakeDoesNotEndWellOnAHelmReleaseThatACacheStillShows(t *testing.T) {
	s := open(t, charted(fixture.MakeRollout("shop").BakeTime(10*time.Minute))...)
	s.rest("shop")
	s.fluxApplies()
	s.helmDeploys("shop")
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeInProgress))
	s.keep(&helmv2.HelmReleaseList{})
	s.helmFails(helmv2.UpgradeFailedReason, "Deployment shop is gone")
	s.Pass(10 * time.Minute)
	s.reconcile("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeInProgress))
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Message).To(Equal(
		"1.0.0: the bake time is over; HelmRelease " + s.Namespace + "/shop: Deployment shop is gone"))
}

func TestHelmReleaseWakesTheRolloutOfItsChart(t *testing.T) {
	s := open(t, charted(fixture.MakeRollout("shop"))...)
	s.play(t, testPlane.RESTConfig())
	s.Eventually(func() string { return s.carried("shop")["tag"] + s.carried("shop")["VERSION"] }).Should(Equal("1.0.01.0.0"))
	s.fluxApplies()
	s.Consistently(func() v1alpha1.BakeStatus { return s.history("shop")[0].State }, time.Second).Should(Equal(v1alpha1.BakeDeploying))
	s.helmDeploys("shop")
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded})
}

func TestHelmReleasesThatAreServedLaterAreWaitedForWithoutARestart(t *testing.T) {
	s := open(t, charted(fixture.MakeRollout("shop").BakeTime(time.Hour))...)
	mgr, r := s.setUp(t, testPlane.RESTConfig(), s.Events, nil)
	s.Run(t, mgr)
	s.Eventually(func() string { return s.carried("shop")["tag"] + s.carried("shop")["VERSION"] }).Should(Equal("1.0.01.0.0"))
	s.Expect(r.WatchHelmReleases(s.Ctx)).To(Succeed())
	s.fluxApplies()
	s.Eventually(func() []v1alpha1.TargetStatus { return s.rollout("shop").Status.Targets }).Should(HaveLen(3))
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying})
	s.helmDeploys("shop")
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeInProgress})
}

func TestWhereHelmReleasesAreNotServedNobodyAsksForThem(t *testing.T) {
	s := open(t, charted(fixture.MakeRollout("shop"))...)
	s.reads = func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				s.Expect(list).NotTo(BeAssignableToTypeOf(&helmv2.HelmReleaseList{}))
				return c.List(ctx, list, opts...)
			},
		})
	}
	s.restart()
	s.reconciler.late.helmReleases.Store(false)
	s.deploy("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
}

func TestHelmReleaseLeadsToTheRolloutOfItsNamespaceOnly(t *testing.T) {
	s := open(t, charted(fixture.MakeRollout("shop"))...)
	elsewhere := s.OpenNamespace(nil)
	for name, tt := range map[string]struct {
		release *fixture.HelmReleaseBuilder
		want    []ctrl.Request
	}{
		"its own":          {fixture.MakeHelmRelease("shop").InNamespace(s.Namespace), []ctrl.Request{{NamespacedName: s.Key("shop")}}},
		"of another one":   {fixture.MakeHelmRelease("shop").InNamespace(elsewhere).FromNamespace(s.Namespace), nil},
		"none":             {fixture.MakeHelmRelease("none").InNamespace(s.Namespace), nil},
		"of no repository": {fixture.MakeHelmRelease("shop").InNamespace(s.Namespace).FromChart("shop"), nil},
	} {
		s.Expect(s.reconciler.concerned().rolloutsOfConsumer(s.Ctx, tt.release.Obj())).To(Equal(tt.want), name)
	}
	found, err := s.reconciler.gatherer().Targets(s.Ctx, s.Key("shop"))
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(found).To(ContainElement(HaveField("HelmRelease", Not(BeNil()))))
	s.Expect(found).To(HaveEach(Not(BeIdenticalTo(targets.Target{}))))
}
