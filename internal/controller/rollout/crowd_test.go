// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const thousand = 1000

// addAll creates objects concurrently.
func (s *testEnv) addAll(objects []client.Object) {
	var waiting sync.WaitGroup
	failed := make(chan error, len(objects))
	for part := range 8 {
		waiting.Go(func() {
			for i := part; i < len(objects); i += 8 {
				objects[i].SetNamespace(s.Namespace)
				if err := s.Create(s.Ctx, objects[i]); err != nil {
					failed <- err
				}
			}
		})
	}
	waiting.Wait()
	close(failed)
	for err := range failed {
		s.Expect(err).NotTo(HaveOccurred())
	}
}

// TestThousandGatesAreReportedInAFewWords: the status stays small, the blocking gates come
// first, one event reports them, and the removal of a gate is noticed.
func TestThousandGatesAreReportedInAFewWords(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	var gates []client.Object
	for i := range thousand {
		gates = append(gates, fixture.MakeGate(fmt.Sprintf("gate-%04d-%s", i, strings.Repeat("g", 243)), "shop").Obj())
	}
	shut := []client.Object{fixture.MakeGate("zz-last", "shop").Closed().Obj(), fixture.MakeGate("zz-strict", "shop").Allow("9.9.9").Obj()}
	s.addAll(append(gates, shut...))
	s.Events.Take()
	s.Wire.Forget()

	s.release("shop", "1.1.0")
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.SomeGatesBlockingReason,
		"1.1.0: not passing: RolloutGate zz-last; RolloutGate zz-strict does not allow 1.1.0"}))
	status := s.rollout("shop").Status
	checkSize(s, &status)
	s.Expect(len(status.Gates) + int(status.Unlisted.Gates)).To(Equal(thousand + 2))
	last := status.Gates[len(status.Gates)-2:]
	s.Expect([]string{last[0].Name, last[1].Name}).To(Equal([]string{"zz-last", "zz-strict"}))
	s.Expect(s.Wire.Writes()).To(Equal([]string{"patch Rollout/status shop"}))
	s.Expect(s.Events.Take()).To(HaveLen(1))
	for range 3 {
		s.reconcile("shop")
	}
	s.Expect(s.Wire.Writes()).To(HaveLen(1))

	for _, gate := range shut {
		s.Expect(s.Delete(s.Ctx, gate)).To(Succeed())
	}
	s.deploy("shop")
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}))

	for _, gate := range gates {
		gate.(*v1alpha1.RolloutGate).Spec.Passing = new(bool)
	}
	s.closeAll(gates)
	s.release("shop", "1.2.0")
	s.rest("shop")
	reported := s.condition("shop", v1alpha1.GatesPassingCondition)
	s.Expect(reported.Message).To(HavePrefix("1.2.0: not passing: RolloutGate gate-0000-"))
	s.Expect(reported.Message).To(MatchRegexp(`and 99\d more$`))
	status = s.rollout("shop").Status
	checkSize(s, &status)
}

func (s *testEnv) closeAll(gates []client.Object) {
	var waiting sync.WaitGroup
	for part := range 8 {
		waiting.Go(func() {
			for i := part; i < len(gates); i += 8 {
				_ = s.Update(s.Ctx, gates[i])
			}
		})
	}
	waiting.Wait()
}

// TestHundredsOfHealthChecksFailInAFewWords: the messages are very long, and there are
// very many checks, however they were selected.
func TestHundredsOfHealthChecksFailInAFewWords(t *testing.T) {
	t.Parallel()
	const checks = 300
	for name, selector := range map[string]*v1alpha1.HealthCheckSelector{
		"an empty selector": {Selector: &metav1.LabelSelector{}},
		"an expression that matches everything": {MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "nobody-has-this", Operator: metav1.LabelSelectorOpDoesNotExist},
			{Key: "nor-this", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"", "a"}},
		}},
		"namespaces by their name": {
			Selector: &metav1.LabelSelector{},
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: []string{"the stage's own"}},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
			s.deploy("shop")
			if selector.NamespaceSelector != nil {
				selector.NamespaceSelector.MatchExpressions[0].Values[0] = s.Namespace
			}
			s.selectChecks(selector)
			var all []client.Object
			for i := range checks {
				all = append(all, fixture.MakeHealthCheck(fmt.Sprintf("check-%04d", i)).Obj())
			}
			s.addAll(all)
			s.release("shop", "1.1.0")
			s.rest("shop")
			s.fluxApplies()
			s.rest("shop")
			s.checksComplain(strings.Repeat("it is down; ", 2000))
			s.rest("shop")

			status := s.rollout("shop").Status
			checkSize(s, &status)
			s.Expect(status.History[0].State()).To(Equal(v1alpha1.BakeFailed))
			s.Expect(*status.History[0].BakeStatusMessage).To(HavePrefix("HealthCheck " + s.Namespace + "/check-0000: it is down; "))
			s.Expect(*status.History[0].BakeStatusMessage).To(MatchRegexp(`and 29\d more$`))
			s.Expect(len(status.History[0].FailedHealthChecks)).To(BeNumerically(">", 10))
			ready := s.condition("shop", v1alpha1.ReadyCondition).Message
			s.Expect(ready).To(MatchRegexp(" … .*and 29\\d more" + regexp.QuoteMeta("; last good release: 1.0.0"+wayBack) + "$"))
			for _, event := range s.Events.Take() {
				s.Expect(len(event.Message)).To(BeNumerically("<=", 1536))
				s.Expect(event.Reason != v1alpha1.BakeTimeFailedReason || event.Message == ready).To(BeTrue(), event.Message)
			}
		})
	}
}

func (s *testEnv) checksComplain(message string) {
	all := &v1alpha1.HealthCheckList{}
	s.Expect(s.List(s.Ctx, all, client.InNamespace(s.Namespace))).To(Succeed())
	failed := metav1.NewTime(s.Clock.Now())
	for i := range all.Items {
		check := &all.Items[i]
		check.Status.Status, check.Status.Message, check.Status.LastErrorTime = v1alpha1.HealthStatusUnhealthy, &message, &failed
		s.Expect(s.Status().Update(s.Ctx, check)).To(Succeed())
	}
}
