// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

func selecting(selector metav1.LabelSelector) func(*coordinationv1.DeploymentCoordination) {
	return func(c *coordinationv1.DeploymentCoordination) { c.Spec.LabelSelector = selector }
}

func TestWhatCannotBeMeantIsRefusedAtCreation(t *testing.T) {
	for name, c := range map[string]struct {
		edit    func(*coordinationv1.DeploymentCoordination)
		message string
	}{
		"an empty selector":         {selecting(metav1.LabelSelector{}), "would select every Deployment of the namespace"},
		"negative minReadySeconds":  {minReady(-1), "should be greater than or equal to 0"},
		"an idlePolicy of nobody's": {func(c *coordinationv1.DeploymentCoordination) { c.Spec.IdlePolicy = "Sleep" }, "Unsupported value"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStage(t)
			err := s.Create(s.ctx, coordination(s.namespace, "shop", c.edit))
			s.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
			s.Expect(err).To(MatchError(ContainSubstring(c.message)))
		})
	}
}

// A coordination without a spec is the sample of the first implementation.
func TestACoordinationWithoutASpecIsRefusedAtCreation(t *testing.T) {
	s := openStage(t)
	c := &unstructured.Unstructured{}
	c.SetGroupVersionKind(coordinationv1.GroupVersion.WithKind(coordinationv1.DeploymentCoordinationKind))
	c.SetNamespace(s.namespace)
	c.SetName("shop")
	s.Expect(s.Create(s.ctx, c)).To(MatchError(ContainSubstring("would select every Deployment of the namespace")))
}

// One that exists already can be changed, and is told of its mistake.
func TestAMistakeTouchesNothingIsToldAndCanBeMended(t *testing.T) {
	for name, c := range map[string]struct {
		selector metav1.LabelSelector
		reason   string
	}{
		"an empty selector": {
			metav1.LabelSelector{}, coordinationv1.EmptySelectorReason,
		},
		"an operator that does not exist": {
			metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "shop", Operator: "Contains", Values: []string{"x"}}}},
			coordinationv1.InvalidSelectorReason,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStage(t)
			s.deploy("a")
			s.deploy("b")
			s.coordinate("store")
			s.coordinate("shop")
			s.change("shop", selecting(c.selector))
			s.Expect(s.rest()).To(BeZero())
			s.Expect(s.unpaused()).To(Equal([]string{"a", "b"}), "nothing is touched")
			for _, kind := range []string{coordinationv1.ReadyCondition, coordinationv1.StalledCondition} {
				s.Expect(s.condition("shop", kind)).To(ContainSubstring(c.reason + ": "))
			}
			s.Expect(kstatusOf(s.coordination("shop"))).To(Equal(status.FailedStatus))
			s.Expect(s.coordination("shop").Status.Deployments).To(BeEmpty())
			s.Expect(s.condition("store", coordinationv1.StalledCondition)).To(BeEmpty(), "the others go on")

			s.change("shop", selecting(metav1.LabelSelector{MatchLabels: map[string]string{"shop": "yes"}}))
			s.rest()
			s.Expect(s.condition("shop", coordinationv1.StalledCondition)).To(BeEmpty())
			s.Expect(s.active("shop")).To(Equal("a"))
			s.Expect(s.unpaused()).To(Equal([]string{"a"}))
		})
	}
}

// What a selector that broke had held is not let loose all at once.
func TestMembersAreGivenBackWhenTheSelectorIsEmptied(t *testing.T) {
	s := three(t)
	s.change("shop", selecting(metav1.LabelSelector{}))
	s.rest()
	s.Expect(s.free()).To(Equal([]string{"a", "b", "c"}))
}

func TestExpressionsSelect(t *testing.T) {
	s := openStage(t)
	s.deploy("a", labelled("shop"))
	s.deploy("b", labelled("shop", "no"))
	s.coordinate("shop", selecting(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "shop", Operator: metav1.LabelSelectorOpIn, Values: []string{"yes", "sure"}},
		{Key: "no", Operator: metav1.LabelSelectorOpDoesNotExist},
	}}))
	s.rest()
	s.Expect(s.coordination("shop").Status.Deployments).To(Equal([]string{s.namespace + "/a"}))
}

func TestACoordinationSelectsInItsOwnNamespaceOnly(t *testing.T) {
	s, elsewhere := openStage(t), openStage(t)
	s.deployed("a")
	elsewhere.deploy("b")
	s.coordinate("shop")
	s.rest()
	elsewhere.rest()
	s.Expect(s.coordination("shop").Status.Deployments).To(Equal([]string{s.namespace + "/a"}))
	s.Expect(elsewhere.unpaused()).To(Equal([]string{"b"}))
}

func TestTheControllersOwnDeploymentIsNoMember(t *testing.T) {
	s := openStage(t)
	s.deploy("controller")
	s.deployed("a")
	s.reconciler.Self = s.key("controller")
	s.coordinate("shop")
	s.rest()
	s.Expect(s.coordination("shop").Status.Deployments).To(Equal([]string{s.namespace + "/a"}))
	s.Expect(s.unpaused()).To(Equal([]string{"controller"}))
}

func TestACoordinationThatNobodyHasSeenYetIsInProgress(t *testing.T) {
	s := openStage(t)
	s.deployed("a")
	s.coordinate("shop")
	s.Expect(s.coordination("shop").Status.ObservedGeneration).To(Equal(int64(-1)))
	s.Expect(kstatusOf(s.coordination("shop"))).To(Equal(status.InProgressStatus))
	s.rest()
	s.Expect(kstatusOf(s.coordination("shop"))).To(Equal(status.CurrentStatus))
	s.edit("a", version("2"))
	s.rest()
	s.Expect(kstatusOf(s.coordination("shop"))).To(Equal(status.InProgressStatus))
}
