// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// remembers counts what the reconciler remembers about objects.
func remembers(r *Reconciler) map[string]int {
	r.memory.mu.Lock()
	defer r.memory.mu.Unlock()
	r.marks.mu.Lock()
	defer r.marks.mu.Unlock()
	all := map[string]int{"writes": r.writes.Len(), "marks": len(r.marks.most), "Rollouts": len(r.memory.all)}
	maps.DeleteFunc(all, func(_ string, count int) bool { return count == 0 })
	return all
}

func TestMemoryOfARolloutIsDroppedOnceItIsEmpty(t *testing.T) {
	g, m, key := NewWithT(t), &memory{}, client.ObjectKey{Name: "shop"}
	target := fixture.MakeRepository("shop").Obj()
	for name, remember := range map[string]func(*remembered){
		"a conflict":  func(m *remembered) { m.conflicts.put(target, &targetConflict{}) },
		"a rejection": func(m *remembered) { m.rejections.put(target, &rejectedWrite{}) },
		"a reset":     func(m *remembered) { m.resets.put(target, new(string)) },
		"a mirror":    func(m *remembered) { m.mirrors.put(target, &fixture.Noon) },
		"culprits":    func(m *remembered) { m.replaceCulprits(culprits{v1alpha1.SomeGatesBlockingReason: "night"}) },
		"a status":    func(m *remembered) { m.unwritable = "1" },
		"a report":    func(m *remembered) { m.reported.written = &quarantined.Report{} },
		"an attempt":  func(m *remembered) { m.reported.failed("no", fixture.Noon) },
	} {
		remember(m.of(key))
		m.settle(key)
		g.Expect(m.all).To(HaveLen(1), name)
		m.of(key).forget()
		m.settle(key)
		g.Expect(m.all).To(BeEmpty(), name)
	}
	m.of(key).due(target, fixture.Noon)
	m.of(key).forget()
	m.settle(key)
	g.Expect(m.all).To(HaveLen(1), "the Rollout is gone, and an object names it")
}

// Preview environments are created and deleted while the process runs.
func TestNothingIsRememberedOfWhatIsDeleted(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Healthy().Obj())...)
	s.markedBy(40)
	mgr, r := s.setUp(t, testPlane.RESTConfig(), s.Events, nil)
	key := types.NamespacedName{Namespace: s.Namespace, Name: "shop"}
	r.memory.of(key).mirrors.put(s.check("web"), &fixture.Noon) // it stays, since no pass looks at it
	tries := 0
	r.APIReader = unlisted{r.APIReader, &tries} // it must stay unknown which marks may be dropped
	s.Expect(r.WatchHelmReleases(s.Ctx)).To(Succeed())
	s.Run(t, mgr)
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying})
	s.Eventually(func() string { return s.carried("shop")["tag"] + s.carried("shop")["VERSION"] }).Should(Equal("1.0.01.0.0"))
	s.fluxApplies()
	s.Eventually(func() []string { return marks(s.check("web")) }).Should(HaveLen(41))

	repository, kustomization := &sourcev1.OCIRepository{}, &kustomizev1.Kustomization{}
	s.Expect(s.Get(s.Ctx, key, repository)).To(Succeed())
	s.Expect(s.Get(s.Ctx, key, kustomization)).To(Succeed())
	all := []client.Object{s.rollout("shop"), s.check("web"), repository, kustomization}
	for _, o := range all {
		written := o.DeepCopyObject().(client.Object)
		written.SetResourceVersion("9999999999999999") // as if the cache never showed it
		r.writes.Wrote(written)
	}
	s.Eventually(func() map[string]int { return remembers(r) }).Should(Equal(map[string]int{"writes": len(all), "marks": 1, "Rollouts": 1}))
	for _, o := range all {
		s.Expect(s.Delete(s.Ctx, o)).To(Succeed())
	}
	s.Eventually(func() map[string]int { return remembers(r) }).Should(BeEmpty())
}
