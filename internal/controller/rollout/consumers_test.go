// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// A consumer in another namespace wakes a Rollout when it appears and when it goes, and not
// whenever Flux reconciles it.
func TestConsumersOfOtherNamespacesWakeOnlyWhenTheyComeAndGo(t *testing.T) {
	consumer := func() *fixture.KustomizationBuilder {
		return fixture.MakeKustomization("shop").InNamespace("b").FromNamespace(fixture.Namespace)
	}
	chart := func() *fixture.HelmReleaseBuilder {
		return fixture.MakeHelmRelease("shop").InNamespace("b").FromNamespace(fixture.Namespace)
	}
	for name, tt := range map[string]struct {
		before, after client.Object
		want          bool
	}{
		"it applies something":           {consumer().Obj(), consumer().Applied("1.0.0").Ready().Obj(), false},
		"it is suspended":                {consumer().Obj(), consumer().Suspended().Obj(), false},
		"it is being deleted":            {consumer().Obj(), consumer().Deleting().Obj(), true},
		"it has another source":          {consumer().Obj(), consumer().From("OCIRepository", "cart").FromNamespace(fixture.Namespace).Obj(), true},
		"it has a source of its own":     {consumer().Obj(), consumer().From("OCIRepository", "shop").Obj(), true},
		"it begins to consume":           {consumer().From("GitRepository", "shop").Obj(), consumer().Obj(), true},
		"it never did":                   {fixture.MakeKustomization("a").Obj(), fixture.MakeKustomization("a").Applied("1.0.0").Obj(), false},
		"a HelmRelease deploys":          {chart().Obj(), chart().Deployed(fixture.Revision("1.0.0")).Obj(), false},
		"a HelmRelease is being deleted": {chart().Obj(), chart().Deleted().Obj(), true},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(consumptionChanged().Update(event.UpdateEvent{ObjectOld: tt.before, ObjectNew: tt.after})).To(Equal(tt.want))
		})
	}
}

func TestConsumerLeadsToTheRolloutOfItsSource(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	shop := []ctrl.Request{{NamespacedName: s.Key("shop")}}
	for name, tt := range map[string]struct {
		consumer client.Object
		refused  bool
		want     []ctrl.Request
	}{
		"of another namespace":             {consumer: fixture.MakeKustomization("shop").InNamespace("b").FromNamespace(s.Namespace).Obj(), want: shop},
		"a HelmRelease":                    {consumer: fixture.MakeHelmRelease("shop").InNamespace("b").FromNamespace(s.Namespace).Obj(), want: shop},
		"of its own namespace":             {consumer: fixture.MakeKustomization("shop").InNamespace(s.Namespace).Obj()},
		"of a source that does not exist":  {consumer: fixture.MakeKustomization("none").InNamespace("b").FromNamespace(s.Namespace).Obj()},
		"of a source of another kind":      {consumer: fixture.MakeKustomization("shop").InNamespace("b").From("GitRepository", "shop").FromNamespace(s.Namespace).Obj()},
		"where Flux must not refer to one": {consumer: fixture.MakeKustomization("shop").InNamespace("b").FromNamespace(s.Namespace).Obj(), refused: true},
	} {
		s.reconciler.NoCrossNamespaceRefs = tt.refused
		s.Expect(s.reconciler.rolloutsOfSourceElsewhere(s.Ctx, tt.consumer)).To(Equal(tt.want), name)
	}
}
