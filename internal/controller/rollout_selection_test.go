// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// TestWhichChecksARolloutSelects checks that only a selected check wakes the Rollout,
// because one selection serves all purposes. That includes checks with more labels than
// are indexed.
func TestWhichChecksARolloutSelects(t *testing.T) {
	s := openStageAlone(t)
	near := s.openNamespace(map[string]string{"of": s.namespace, "tier": "gold"})
	far := s.openNamespace(map[string]string{"of": s.namespace, "tier": "lead"})
	names := map[string]string{s.namespace: "own", near: "near", far: "far"}
	s.labelNamespace("of", s.namespace)
	for namespace := range names {
		for _, app := range []string{"shop", "cart"} {
			check := fixture.MakeHealthCheck(app).InNamespace(namespace).LetsIn(nil).Obj()
			check.Labels = map[string]string{"app": app}
			for i := 0; namespace == near && i < mostLabels; i++ {
				check.Labels[fmt.Sprintf("more-%d", i)] = "yes"
			}
			s.add(check)
		}
	}
	shop := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
	notCart := []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"cart"}}}
	gold := &metav1.LabelSelector{MatchLabels: map[string]string{"of": s.namespace}, MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"gold"}}}}
	every := &metav1.LabelSelector{MatchLabels: map[string]string{"of": s.namespace}}
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
			s.add(rollout)
			defer s.remove(&v1alpha1.Rollout{}, "shop")
			var selected, waking []string
			for _, check := range s.reconciler.gather(s.ctx, rollout).Health.Checks {
				selected = append(selected, names[check.Namespace]+"/"+check.Name)
			}
			all := &v1alpha1.HealthCheckList{}
			s.Expect(s.List(s.ctx, all)).To(Succeed())
			for i := range all.Items {
				if names[all.Items[i].Namespace] == "" {
					continue // of another test
				}
				for _, woken := range s.reconciler.rolloutsOfCheck(s.ctx, &all.Items[i]) {
					if woken.NamespacedName == s.key("shop") {
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

// in returns the same stage for a subtest.
func (s *stage) in(t *testing.T) *stage {
	t.Helper()
	inner := *s
	inner.WithT, inner.ctx = NewWithT(t), t.Context()
	return &inner
}

func TestAPolicyWakesTheRolloutsThatNameItAndNoOthers(t *testing.T) {
	other := fixture.MakeRollout("other").Obj()
	other.Spec.ReleasesImagePolicy.Name = "shop"
	s := openStageAlone(t, fixture.MakeRollout("shop").Obj(), other, fixture.MakeRollout("cart").Obj(),
		fixture.MakeScan("shop").Obj(), fixture.MakePolicy("shop").Obj(), fixture.MakePolicy("cart").Obj())
	elsewhere := fixture.MakeRollout("shop").Obj()
	elsewhere.Namespace = s.openNamespace(nil)
	s.add(elsewhere)
	want := []reconcile.Request{{NamespacedName: s.key("shop")}, {NamespacedName: s.key("other")}}
	policy, scan := fixture.MakePolicy("shop").Obj(), fixture.MakeScan("shop").Obj()
	policy.Namespace, scan.Namespace = s.namespace, s.namespace
	s.Expect(s.reconciler.rolloutsOfPolicy(s.ctx, policy)).To(ConsistOf(want))
	s.Expect(s.reconciler.rolloutsOfRepository(s.ctx, scan)).To(ConsistOf(want))
}

// TestALabelMoreIsNoLookUpMore: only the size of an object limits its labels.
func TestALabelMoreIsNoLookUpMore(t *testing.T) {
	g := NewWithT(t)
	check := fixture.MakeHealthCheck("laden").Obj()
	check.Labels = map[string]string{}
	for i := range 50_000 {
		check.Labels[fmt.Sprintf("label-%d", i)] = "yes"
	}
	g.Expect(indexedLabels(check)).To(Equal([]string{manyLabels}))
	lists := 0
	r := &RolloutReconciler{Client: interceptor.NewClient(fake.NewClientBuilder().WithScheme(testClient.Scheme()).Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			lists++
			return nil
		},
	})}
	r.rolloutsOfCheck(t.Context(), check)
	g.Expect(lists).To(Equal(2))
}
