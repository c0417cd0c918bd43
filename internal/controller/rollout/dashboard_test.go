// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
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
