// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// effort is the cost of an operation: how many objects of the caches are examined, and
// which Rollouts are woken.
type effort struct {
	looked int
	woken  []reconcile.Request
}

// TestNeighboursCostNothing checks what a pass examines, and what each event examines and
// wakes. Both are the same with twenty other, equally equipped Rollouts in the namespace.
func TestNeighboursCostNothing(t *testing.T) {
	for name, selector := range map[string]v1alpha1.HealthCheckSelector{
		"checks by matchLabels":      {MatchLabels: map[string]string{"app": "shop"}},
		"checks by one label of two": {MatchLabels: map[string]string{"app": "shop", "by": "all"}},
		"checks by an expression": {MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"shop", "shop-canary"}}}},
		"checks of other namespaces": {MatchLabels: map[string]string{"app": "shop"},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "none"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := openAlone(t)
			looked := s.countLooks()
			s.neighbour("shop", selector)
			s.deploy("shop")
			alone := s.efforts(looked)
			for of, effort := range alone {
				s.Expect(effort.looked+len(effort.woken)).To(BeNumerically(">", 0), of)
			}
			for i := range 20 {
				name := fmt.Sprintf("other-%d", i)
				s.neighbour(name, v1alpha1.HealthCheckSelector{
					MatchLabels: map[string]string{"app": name}, NamespaceSelector: selector.NamespaceSelector})
			}
			s.Expect(s.efforts(looked)).To(Equal(alone))
		})
	}
}

// neighbour adds a Rollout with everything that it needs, under one name.
func (s *testEnv) neighbour(name string, checks v1alpha1.HealthCheckSelector) {
	rollout := fixture.MakeRollout(name).Obj()
	rollout.Spec.HealthCheckSelector = &checks
	check := fixture.MakeHealthCheck(name).Healthy().Obj()
	check.Labels = map[string]string{"app": name, "by": "all"}
	s.Add(fixture.MakeScan(name).Found("1.0.0").Obj(), fixture.MakePolicy(name).Latest("1.0.0").Obj(),
		fixture.MakeRepository(name).DrivenBy(name).Obj(), fixture.MakeKustomization(name).DrivenBy(name, "VERSION").Obj(),
		fixture.MakeHelmRelease(name).Obj(),
		fixture.MakeGate(name, name).Obj(), check, rollout)
}

// efforts returns the effort of a pass of the Rollout shop, and of an event of each
// object that it depends on.
func (s *testEnv) efforts(looked *int) map[string]effort {
	r := s.reconciler
	all := map[string]effort{}
	try := func(what string, attempt func() []reconcile.Request) {
		*looked = 0
		woken := attempt()
		all[what] = effort{*looked, woken}
	}
	try("a pass", func() []reconcile.Request { s.reconcile("shop"); return nil })
	for _, event := range []struct {
		of   client.Object
		wake handler.MapFunc
	}{
		{&imagev1.ImagePolicy{}, r.concerned().rolloutsOfPolicy},
		{&imagev1.ImageRepository{}, r.concerned().rolloutsOfRepository},
		{&sourcev1.OCIRepository{}, r.concerned().rolloutsOfSource},
		{&kustomizev1.Kustomization{}, r.concerned().rolloutsOfConsumer},
		{&helmv2.HelmRelease{}, r.concerned().rolloutsOfConsumer},
		{&v1alpha1.RolloutGate{}, rolloutOfGate},
		{&v1alpha1.HealthCheck{}, r.concerned().rolloutsOfCheck},
	} {
		s.Expect(s.Get(s.Ctx, s.Key("shop"), event.of)).To(Succeed())
		try(fmt.Sprintf("%T", event.of), func() []reconcile.Request { return event.wake(s.Ctx, event.of) })
	}
	return all
}

// countLooks counts the objects that a cache has to examine for a query. An index leads
// only to the objects that it finds. A label selector has to examine all.
func (s *testEnv) countLooks() *int {
	looked := new(int)
	s.reads = func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				*looked++
				return c.Get(ctx, key, o, options...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				seen := list.DeepCopyObject().(client.ObjectList)
				unselected := (&client.ListOptions{}).ApplyOptions(options)
				unselected.LabelSelector = nil
				if err := c.List(ctx, seen, unselected); err != nil {
					return err
				}
				*looked += 1 + apimeta.LenList(seen)
				return c.List(ctx, list, options...)
			},
		})
	}
	s.restart()
	return looked
}
