// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// manyLabels are more than are looked up one by one.
const manyLabels = 33

// TestSelectedChecks checks that only a selected check wakes the Rollout,
// because one selection serves all purposes. That includes checks with more labels than
// are indexed.
func TestSelectedChecks(t *testing.T) {
	s := openAlone(t)
	near := s.OpenNamespace(map[string]string{"of": s.Namespace, "tier": "gold"})
	far := s.OpenNamespace(map[string]string{"of": s.Namespace, "tier": "lead"})
	names := map[string]string{s.Namespace: "own", near: "near", far: "far"}
	s.LabelNamespace("of", s.Namespace)
	for namespace := range names {
		for _, app := range []string{"shop", "cart"} {
			check := fixture.MakeHealthCheck(app).InNamespace(namespace).LetsIn(nil).Obj()
			check.Labels = map[string]string{"app": app}
			for i := 0; namespace == near && i < manyLabels; i++ {
				check.Labels[fmt.Sprintf("more-%d", i)] = "yes"
			}
			s.Add(check)
		}
	}
	shop := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
	notCart := []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"cart"}}}
	gold := &metav1.LabelSelector{MatchLabels: map[string]string{"of": s.Namespace}, MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"gold"}}}}
	every := &metav1.LabelSelector{MatchLabels: map[string]string{"of": s.Namespace}}
	for name, tt := range map[string]struct {
		selector *v1alpha1.HealthCheckSelector
		want     []string
	}{
		"no selector, no checks":                   {nil, nil},
		"one without any selector, none":           {&v1alpha1.HealthCheckSelector{}, nil},
		"only a namespaceSelector, none":           {&v1alpha1.HealthCheckSelector{NamespaceSelector: every}, nil},
		"an empty selector, all of the own":        {&v1alpha1.HealthCheckSelector{Selector: &metav1.LabelSelector{}}, []string{"own/shop", "own/cart"}},
		"by labels, in the own namespace":          {&v1alpha1.HealthCheckSelector{Selector: shop}, []string{"own/shop"}},
		"by expressions":                           {&v1alpha1.HealthCheckSelector{Selector: &metav1.LabelSelector{MatchExpressions: notCart}}, []string{"own/shop"}},
		"the short form, by labels":                {&v1alpha1.HealthCheckSelector{MatchLabels: shop.MatchLabels}, []string{"own/shop"}},
		"the short form, by expressions":           {&v1alpha1.HealthCheckSelector{MatchExpressions: notCart}, []string{"own/shop"}},
		"in namespaces by label":                   {&v1alpha1.HealthCheckSelector{Selector: shop, NamespaceSelector: every}, []string{"own/shop", "near/shop", "far/shop"}},
		"in namespaces by expression, not the own": {&v1alpha1.HealthCheckSelector{MatchLabels: shop.MatchLabels, NamespaceSelector: gold}, []string{"near/shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.in(t)
			rollout := fixture.MakeRollout("shop").Obj()
			rollout.Spec.HealthCheckSelector = tt.selector
			s.Add(rollout)
			defer s.Remove(&v1alpha1.Rollout{}, "shop")
			var selected, waking []string
			for _, check := range s.reconciler.gather(s.Ctx, rollout).Health.Checks {
				selected = append(selected, names[check.Namespace]+"/"+check.Name)
			}
			all := &v1alpha1.HealthCheckList{}
			s.Expect(s.List(s.Ctx, all)).To(Succeed())
			for i := range all.Items {
				if names[all.Items[i].Namespace] == "" {
					continue // of another test
				}
				for _, woken := range s.reconciler.concerned().rolloutsOfCheck(s.Ctx, &all.Items[i]) {
					if woken.NamespacedName == s.Key("shop") {
						waking = append(waking, names[all.Items[i].Namespace]+"/"+all.Items[i].Name)
					}
				}
			}
			s.Expect(selected).To(ConsistOf(tt.want))
			for _, check := range tt.want {
				s.Expect(waking).To(ContainElement(check))
			}
		})
	}
}

// in returns the same env for a subtest.
func (s *testEnv) in(t *testing.T) *testEnv {
	t.Helper()
	shared, inner := *s.Env, *s
	shared.WithT, shared.Ctx = NewWithT(t), t.Context()
	inner.Env = &shared
	return &inner
}

func TestPolicyWakesTheRolloutsThatNameItAndNoOthers(t *testing.T) {
	other := fixture.MakeRollout("other").Obj()
	other.Spec.ReleasesImagePolicy.Name = "shop"
	s := openAlone(t, fixture.MakeRollout("shop").Obj(), other, fixture.MakeRollout("cart").Obj(),
		fixture.MakeScan("shop").Obj(), fixture.MakePolicy("shop").Obj(), fixture.MakePolicy("cart").Obj())
	elsewhere := fixture.MakeRollout("shop").Obj()
	elsewhere.Namespace = s.OpenNamespace(nil)
	s.Add(elsewhere)
	want := []reconcile.Request{{NamespacedName: s.Key("shop")}, {NamespacedName: s.Key("other")}}
	policy, scan := fixture.MakePolicy("shop").Obj(), fixture.MakeScan("shop").Obj()
	policy.Namespace, scan.Namespace = s.Namespace, s.Namespace
	s.Expect(s.reconciler.concerned().rolloutsOfPolicy(s.Ctx, policy)).To(ConsistOf(want))
	s.Expect(s.reconciler.concerned().rolloutsOfRepository(s.Ctx, scan)).To(ConsistOf(want))
}
