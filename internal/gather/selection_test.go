// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// TestLabelMoreIsNoLookUpMore: only the size of an object limits its labels.
func TestLabelMoreIsNoLookUpMore(t *testing.T) {
	g := NewWithT(t)
	check := fixture.MakeHealthCheck("laden").Obj()
	check.Labels = map[string]string{}
	for i := range 50_000 {
		check.Labels[fmt.Sprintf("label-%d", i)] = "yes"
	}
	g.Expect(indexedLabels(check)).To(Equal([]string{manyLabels}))
	lists := 0
	counted := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme(g)).Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			lists++
			return nil
		},
	})
	_, err := RolloutsOfCheck(t.Context(), counted, check)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lists).To(Equal(2))
}

func TestSelects(t *testing.T) {
	g := NewWithT(t)
	namespace := func(name string, labels map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	c := fake.NewClientBuilder().WithScheme(scheme(g)).WithObjects(namespace(fixture.Namespace, map[string]string{"team": "web"}),
		namespace("monitoring", map[string]string{"team": "ops"})).Build()
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
	in := func(team string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
	}
	near := fixture.MakeHealthCheck("errors")
	far := func() *fixture.HealthCheckBuilder { return fixture.MakeHealthCheck("errors").InNamespace("monitoring") }
	for name, tt := range map[string]struct {
		selector *v1alpha1.HealthCheckSelector
		check    *fixture.HealthCheckBuilder
		want     bool
	}{
		"its label":                     {&v1alpha1.HealthCheckSelector{Selector: app}, near, true},
		"its label, in the short form":  {&v1alpha1.HealthCheckSelector{MatchLabels: app.MatchLabels}, near, true},
		"another label":                 {&v1alpha1.HealthCheckSelector{Selector: in("web")}, near, false},
		"nothing":                       {nil, near, false},
		"a selector that is not one":    {&v1alpha1.HealthCheckSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "is"}}}, near, false},
		"another namespace":             {&v1alpha1.HealthCheckSelector{Selector: app}, far().LetsIn(in("web").MatchLabels), false},
		"the labels of its namespace":   {&v1alpha1.HealthCheckSelector{Selector: app, NamespaceSelector: in("ops")}, far().LetsIn(in("web").MatchLabels), true},
		"without access":                {&v1alpha1.HealthCheckSelector{Selector: app, NamespaceSelector: in("ops")}, far().LetsIn(in("ops").MatchLabels), false},
		"the own namespace, by labels":  {&v1alpha1.HealthCheckSelector{Selector: app, NamespaceSelector: in("web")}, near, true},
		"only namespaces of others":     {&v1alpha1.HealthCheckSelector{Selector: app, NamespaceSelector: in("ops")}, near, false},
		"a namespace that is not there": {&v1alpha1.HealthCheckSelector{Selector: app, NamespaceSelector: &metav1.LabelSelector{}}, far().InNamespace("gone"), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			rollout, check := fixture.MakeRollout("shop").Obj(), tt.check.Obj()
			rollout.Spec.HealthCheckSelector, check.Labels = tt.selector, app.MatchLabels
			got, err := Selects(t.Context(), c, rollout, check)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tt.want))
		})
	}
}
