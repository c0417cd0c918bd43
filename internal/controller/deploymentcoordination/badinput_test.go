// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

func selecting(selector metav1.LabelSelector) func(*coordinationv1.DeploymentCoordination) {
	return func(c *coordinationv1.DeploymentCoordination) { c.Spec.LabelSelector = selector }
}

func TestSpecThatCannotBeMeantIsRefusedAtCreation(t *testing.T) {
	t.Parallel()
	const badMaxConcurrent = "maxConcurrent must be a number of at least 1, or a percentage from 1% to 100%"
	for name, c := range map[string]struct {
		edit    func(*coordinationv1.DeploymentCoordination)
		message string
	}{
		"an empty selector":              {selecting(metav1.LabelSelector{}), "would select every Deployment of the namespace"},
		"negative minReadySeconds":       {minReady(-1), "should be greater than or equal to 0"},
		"maxConcurrent of 0":             {atATime(intstr.FromInt32(0)), badMaxConcurrent},
		"maxConcurrent below 0":          {atATime(intstr.FromInt32(-1)), badMaxConcurrent},
		"maxConcurrent of 0%":            {atATime(intstr.FromString("0%")), badMaxConcurrent},
		"maxConcurrent of more than all": {atATime(intstr.FromString("101%")), badMaxConcurrent},
		"maxConcurrent as text":          {atATime(intstr.FromString("2")), badMaxConcurrent},
		"maxConcurrent with a minus":     {atATime(intstr.FromString("-5%")), badMaxConcurrent},
		"an operator that does not exist": {
			selecting(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "shop", Operator: "in", Values: []string{"yes"}}}}),
			"must be In, NotIn, Exists or DoesNotExist",
		},
		"an idlePolicy of nobody's": {func(c *coordinationv1.DeploymentCoordination) { c.Spec.IdlePolicy = "Sleep" }, "Unsupported value"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			err := s.Create(s.Ctx, coordination(s.Namespace, "shop", c.edit))
			s.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
			s.Expect(err).To(MatchError(ContainSubstring(c.message)))
		})
	}
}

// The sample of the first implementation was a coordination without a spec.
func TestCoordinationWithoutASpecIsRefusedAtCreation(t *testing.T) {
	s := open(t)
	c := &unstructured.Unstructured{}
	c.SetGroupVersionKind(coordinationv1.GroupVersion.WithKind(coordinationv1.DeploymentCoordinationKind))
	c.SetNamespace(s.Namespace)
	c.SetName("shop")
	s.Expect(s.Create(s.Ctx, c)).To(MatchError(ContainSubstring("would select every Deployment of the namespace")))
}

// No user leaves out a selector on purpose.
func TestSelectorCannotBecomeAMistake(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		selector metav1.LabelSelector
		message  string
	}{
		"empty": {metav1.LabelSelector{}, "would select every Deployment of the namespace"},
		"of an operator that does not exist": {
			metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "shop", Operator: "exists"}}},
			"must be In, NotIn, Exists or DoesNotExist",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.coordinate("shop")
			changed := s.coordination("shop")
			changed.Spec.LabelSelector = c.selector
			err := s.Update(s.Ctx, changed)
			s.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
			s.Expect(err).To(MatchError(ContainSubstring(c.message)))
		})
	}
}

// A mistaken selector that was stored before the API server refused it can still be
// changed and reported.
func TestMistakeThatIsStoredCanBeChanged(t *testing.T) {
	for name, selector := range mistakes {
		t.Run(name, func(t *testing.T) {
			s := openAlone(t)
			s.coordinate("shop")
			s.unchecked(func() { s.change("shop", selecting(selector)) })
			s.change("shop", minReady(5))
			s.rest()
			s.Expect(s.coordination("shop").Status.ObservedGeneration).To(BeEquivalentTo(3))
		})
	}
}

// mistakes are selectors that the API server stores no longer.
var mistakes = map[string]metav1.LabelSelector{
	"an empty selector": {},
	"an operator that does not exist": {
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "shop", Operator: "Contains", Values: []string{"x"}}},
	},
}

// unchecked calls do while the API server has no validation rules for coordinations, as
// it was before the rules existed.
func (s *testEnv) unchecked(do func()) {
	s.Expect(s.alone).To(BeTrue(), "other tests need the rules: use openAlone")
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("deploymentcoordinations." + coordinationv1.GroupVersion.Group)
	s.Expect(s.Get(s.Ctx, client.ObjectKeyFromObject(crd), crd)).To(Succeed())
	checked := crd.DeepCopy()
	manifests.RemoveRules(crd.Object["spec"])
	s.Expect(s.Update(s.Ctx, crd)).To(Succeed())
	defer func() {
		checked.SetResourceVersion(crd.GetResourceVersion())
		s.Expect(s.Update(s.Ctx, checked)).To(Succeed())
		s.Eventually(s.storesMistakes).ShouldNot(Succeed())
	}()
	s.Eventually(s.storesMistakes).Should(Succeed())
	do()
}

func (s *testEnv) storesMistakes() error {
	return s.Create(s.Ctx, coordination(s.Namespace, "probe", selecting(metav1.LabelSelector{})), client.DryRunAll)
}

// A coordination that exists already reports its mistake.
func TestMistakeTouchesNothingIsReportedAndCanBeFixed(t *testing.T) {
	for name, reason := range map[string]string{
		"an empty selector":               coordinationv1.EmptySelectorReason,
		"an operator that does not exist": coordinationv1.InvalidSelectorReason,
	} {
		t.Run(name, func(t *testing.T) {
			s := openAlone(t)
			s.deploy("a")
			s.deploy("b")
			s.coordinate("store")
			s.coordinate("shop")
			s.unchecked(func() { s.change("shop", selecting(mistakes[name])) })
			s.Expect(s.rest()).To(BeZero())
			s.Expect(s.unpaused()).To(Equal([]string{"a", "b"}), "nothing is touched")
			for _, kind := range []string{coordinationv1.ReadyCondition, coordinationv1.StalledCondition} {
				s.Expect(s.condition("shop", kind)).To(ContainSubstring(reason + ": "))
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

// The waiting Deployments are not unpaused all at once, and the active one keeps the
// turn.
func TestMistakeInAWaveUnpausesNothing(t *testing.T) {
	for name, selector := range mistakes {
		t.Run(name, func(t *testing.T) {
			s := openAlone(t)
			s.three(resume)
			for _, member := range []string{"a", "b", "c"} {
				s.edit(member, version("2"), paused(true))
			}
			s.rest()
			s.Expect(s.unpaused()).To(Equal([]string{"a"}))
			s.unchecked(func() { s.change("shop", selecting(selector)) })
			s.rest()
			s.restart()
			s.rest()
			s.Expect(s.unpaused()).To(Equal([]string{"a"}))
			s.Expect(s.condition("shop", coordinationv1.StalledCondition)).NotTo(BeEmpty())

			s.finishes("a")
			s.change("shop", selecting(metav1.LabelSelector{MatchLabels: map[string]string{"shop": "yes"}}))
			s.rest()
			s.Expect(s.active("shop")).To(Equal("b"))
			s.Expect(s.unpaused()).To(Equal([]string{"a", "b"}))
		})
	}
}

func TestExpressionsSelect(t *testing.T) {
	s := open(t)
	s.deploy("a", labelled("shop"))
	s.deploy("b", labelled("shop", "no"))
	s.coordinate("shop", selecting(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "shop", Operator: metav1.LabelSelectorOpIn, Values: []string{"yes", "sure"}},
		{Key: "no", Operator: metav1.LabelSelectorOpDoesNotExist},
	}}))
	s.rest()
	s.Expect(s.coordination("shop").Status.Deployments).To(Equal([]string{s.Namespace + "/a"}))
}

func TestCoordinationSelectsInItsOwnNamespaceOnly(t *testing.T) {
	s, elsewhere := open(t), open(t)
	s.deployed("a")
	elsewhere.deploy("b")
	s.coordinate("shop")
	s.rest()
	elsewhere.rest()
	s.Expect(s.coordination("shop").Status.Deployments).To(Equal([]string{s.Namespace + "/a"}))
	s.Expect(elsewhere.unpaused()).To(Equal([]string{"b"}))
}

func TestControllersOwnDeploymentIsNoMember(t *testing.T) {
	s := open(t)
	s.deploy("controller")
	s.deployed("a")
	s.reconciler.Self = s.Key("controller")
	s.coordinate("shop")
	s.rest()
	s.Expect(s.coordination("shop").Status.Deployments).To(Equal([]string{s.Namespace + "/a"}))
	s.Expect(s.unpaused()).To(Equal([]string{"controller"}))
}

func TestCoordinationThatNobodyHasSeenYetIsInProgress(t *testing.T) {
	s := open(t)
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
