// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"slices"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// What kuberik's dashboard v0.7.7 sends, as its field manager does: merge patches.
const (
	fromDashboard     = "rollout-dashboard"
	dashboardPins     = `{"spec":{"wantedVersion":"1.0.0"},"metadata":{"annotations":{"rollout.kuberik.com/deploy-message":"Pinned to version 1.0.0","rollout.kuberik.com/deploy-user":"admin"}}}`
	dashboardClears   = `{"spec":{"wantedVersion":null},"metadata":{"annotations":{"rollout.kuberik.com/deploy-message":"Cleared version pin","rollout.kuberik.com/deploy-user":"admin"}}}`
	dashboardBypasses = `{"metadata":{"annotations":{"rollout.kuberik.com/bypass-gates":"1.1.0"}}}`
	dashboardForces   = `{"spec":{"wantedVersion":null},"metadata":{"annotations":{"rollout.kuberik.com/force-deploy":"1.2.0","rollout.kuberik.com/deploy-message":"Force deploy"}}}`
)

// A bypass that was refused for want of a reason must not find one later, in the words that
// the dashboard writes when it clears a pin.
func TestBypassThatWasRefusedStaysRefused(t *testing.T) {
	s := openEnvironments(t, production())
	s.stagingHas(there("1.0.0").Succeeded())
	s.knows("1.1.0")
	s.patchAs(fromDashboard, dashboardBypasses)
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.RequestAcceptedCondition).Reason).To(Equal(environmentsv1.BypassNeedsReasonReason))
	s.Expect(s.rollout("shop").Annotations).NotTo(HaveKey(v1alpha1.BypassGatesAnnotation))

	s.patchAs(fromDashboard, dashboardPins)
	s.rest("shop")
	s.patchAs(fromDashboard, dashboardClears)
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.0.0"))
	s.held(environmentsv1.UpstreamPendingReason, "waits for staging, which runs 1.0.0")
}

// What was said next to a pin is over with it.
func TestWordsOfAPinAreNoReasonForABypass(t *testing.T) {
	s := openEnvironments(t, production())
	s.stagingHas(there("1.0.0").Succeeded())
	s.knows("1.1.0")
	s.patchAs(fromDashboard, dashboardPins)
	s.deploy("shop")
	s.patchAs(fromDashboard, dashboardClears)
	s.rest("shop")
	s.patchAs(fromDashboard, dashboardBypasses)
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.0.0"))
	s.Expect(s.condition("shop", v1alpha1.RequestAcceptedCondition).Reason).To(Equal(environmentsv1.BypassNeedsReasonReason))
}

// The dashboard cannot take back a force. One of what was recalled ends, and says so.
func TestForceOfTheDashboardEndsIfItIsRefused(t *testing.T) {
	s := openRecall(t)
	s.Change(s.quarantine(), func(o client.Object) { o.(*v1alpha1.ReleaseQuarantine).Spec.Enforce = v1alpha1.EnforceAlways })
	s.Expect(s.Patch(s.Ctx, s.rollout("shop-eu"), client.RawPatch(types.MergePatchType, []byte(dashboardForces)), client.FieldOwner(fromDashboard))).To(Succeed())
	s.rest("shop-eu")
	s.Expect(s.rollout("shop-eu").Annotations).NotTo(HaveKey(v1alpha1.ForceDeployAnnotation))
	said := s.condition("shop-eu", v1alpha1.RequestAcceptedCondition)
	s.Expect(said.Status).To(Equal(metav1.ConditionFalse))
	s.Expect(said.Reason).To(Equal(v1alpha1.QuarantinedReason))
	s.Expect(said.Message).To(HavePrefix("rollout.kuberik.com/force-deploy has no effect: 1.2.0 is in quarantine by "))
}

// blockingInDashboard returns the gates that kuberik's dashboard shows as those that block a
// release, by its own rule: of the items of status.gates it leaves out those for which it finds
// no RolloutGate of that name.
func (s *testEnv) blockingInDashboard(tag string) (shown []string) {
	gates := &v1alpha1.RolloutGateList{}
	s.Expect(s.List(s.Ctx, gates, client.InNamespace(s.Namespace))).To(Succeed())
	for _, item := range s.rollout("shop").Status.Gates {
		blocks := item.Passing != nil && !*item.Passing
		if item.AllowedVersions != nil {
			blocks = !slices.Contains(item.AllowedVersions, tag)
		}
		found := slices.ContainsFunc(gates.Items, func(g v1alpha1.RolloutGate) bool { return g.Name == item.Name && g.RolloutName() == "shop" })
		if blocks && found {
			shown = append(shown, item.Name)
		}
	}
	return shown
}

// Its page draws "Ready" and a button where no gate blocks.
func TestDashboardShowsWhatApprovalsHold(t *testing.T) {
	for name, tt := range map[string]struct {
		gate  func(s *testEnv) client.Object
		shows string
	}{
		"a RolloutGate":        {func(*testEnv) client.Object { return fixture.MakeGate("qa", "shop").Asking(fixture.AskFor(1)).Obj() }, "qa"},
		"a ClusterRolloutGate": {func(s *testEnv) client.Object { return s.clusterGate().Asking(fixture.AskFor(1)).Obj() }, "shop-holds"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
			s.LabelNamespace("only", s.Namespace)
			s.deploy("shop")
			s.Pass(time.Since(s.Clock.Now()) + time.Minute)
			gate := tt.gate(s)
			if _, ok := gate.(*v1alpha1.RolloutGate); ok {
				gate.SetNamespace(s.Namespace)
			}
			s.Expect(s.Create(s.Ctx, gate)).To(Succeed())
			t.Cleanup(func() { _ = s.Delete(context.WithoutCancel(s.Ctx), gate) })
			s.ChangeStatus(fixture.MakePolicy("shop").Obj(), func(o client.Object) {
				setLatest(o, "1.1.0")
				o.(*imagev1.ImagePolicy).Status.LatestRef.Digest = fixture.DigestOf("1.1.0")
			})
			s.rest("shop")
			s.Expect(s.history("shop")[0].Tag).To(Equal("1.0.0"))
			s.Expect(s.blockingInDashboard("1.1.0")).To(Equal([]string{tt.shows}))

			s.Add(fixture.MakeApproval("bob", "shop", "1.1.0").Obj())
			s.rest("shop")
			s.Expect(s.history("shop")[0].Tag).To(Equal("1.1.0"))
			s.Expect(s.blockingInDashboard("1.1.0")).NotTo(ContainElement("shop-holds"), "it is gone with what it stands for")
		})
	}
}

// clusterGate selects the Rollouts of the test's namespace.
func (s *testEnv) clusterGate() *fixture.ClusterGateBuilder {
	return fixture.MakeClusterGate("prod-" + s.Namespace).In(map[string]string{"only": s.Namespace})
}
