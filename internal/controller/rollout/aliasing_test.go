// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fluxrollouts/rollout-controller/internal/cache"
	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/test/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// Objects in the cache for which Flux reports only Ready share that condition. A change
// of one object after the read must not be written into the others: the client empties an
// object before it decodes a response into it.
func TestFieldsAreRelinquishedWithoutAWriteToTheCache(t *testing.T) {
	s := openAfterUpstream(t, fixture.MakeRollout("shop"), nil)
	s.Add(fixture.MakeKustomization("other").Obj())
	for _, name := range []string{"shop", "other"} {
		s.fluxSays(name, metav1.Condition{Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: meta.ReconciliationSucceededReason, ObservedGeneration: 1})
	}
	cached := s.cachedClient(t)
	isReady := func() bool {
		k := &kustomizev1.Kustomization{}
		s.Expect(cached.Get(s.Ctx, s.Key("other"), k)).To(Succeed())
		return apimeta.IsStatusConditionTrue(k.Status.Conditions, meta.ReadyCondition)
	}
	s.Expect(isReady()).To(BeTrue())
	all, err := targets.Find(s.Ctx, cached, types.NamespacedName{Namespace: s.Namespace, Name: "shop"}, false)
	s.Expect(err).NotTo(HaveOccurred())

	s.fluxSays("shop", metav1.Condition{Type: meta.ReconcilingCondition, Status: metav1.ConditionTrue, Reason: meta.ProgressingReason, ObservedGeneration: 1},
		metav1.Condition{Type: meta.ReadyCondition, Status: metav1.ConditionUnknown, Reason: meta.ProgressingReason, ObservedGeneration: 1})
	gaveBack := 0
	for _, found := range all {
		if found.OwnsTooMuch() {
			gaveBack++
			s.Expect(found.Relinquish(s.Ctx, s, cached)).To(Succeed())
		}
	}
	s.Expect(gaveBack).To(Equal(2))
	s.Expect(isReady()).To(BeTrue(), "of one that nobody touched")
}

// fluxSays writes the conditions of a Kustomization as Flux does.
func (s *testEnv) fluxSays(name string, conditions ...metav1.Condition) {
	for i := range conditions {
		conditions[i].LastTransitionTime = metav1.NewTime(fixture.Noon)
	}
	k := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
	s.ChangeStatus(k, func(client.Object) { k.Status.ObservedGeneration, k.Status.Conditions = 1, conditions })
}

// cachedClient returns a client that reads from the same caches as in production.
func (s *testEnv) cachedClient(t *testing.T) client.Client {
	t.Helper()
	options := cache.Options(cache.Setting{})
	options.DefaultNamespaces = map[string]ctrlcache.Config{s.Namespace: {}}
	mgr, err := ctrl.NewManager(testPlane.RESTConfig(), ctrl.Options{
		Scheme: env.Scheme(), Cache: options, NewCache: fieldindex.NewCache(ctrlcache.New), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(index(s.Ctx, mgr.GetFieldIndexer())).To(Succeed())
	s.Run(t, mgr)
	s.Expect(mgr.GetCache().WaitForCacheSync(s.Ctx)).To(BeTrue())
	return mgr.GetClient()
}

// TestFieldsOfAnotherVersionAreNotRelinquished: the patch names entries by their place,
// which another writer may have changed.
func TestFieldsOfAnotherVersionAreNotRelinquished(t *testing.T) {
	s := openAfterUpstream(t, fixture.MakeRollout("shop"), nil)
	all, err := targets.Find(s.Ctx, s.reconciler.Client, types.NamespacedName{Namespace: s.Namespace, Name: "shop"}, false)
	s.Expect(err).NotTo(HaveOccurred())
	outrun := interceptor.NewClient(s.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			err := c.Get(ctx, key, o, options...)
			change := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"changed":"yes"}}}`))
			return errors.Join(err, s.WithWatch.Patch(ctx, o.DeepCopyObject().(client.Object), change, client.FieldOwner("somebody")))
		},
	})
	for _, found := range all {
		s.Expect(found.OwnsTooMuch()).To(BeTrue())
		s.Expect(apierrors.IsConflict(found.Relinquish(s.Ctx, outrun, s.WithWatch))).To(BeTrue())
	}
}
