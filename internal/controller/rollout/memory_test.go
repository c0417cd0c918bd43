// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// remembers counts what the reconciler remembers about objects.
func remembers(r *Reconciler) map[string]int {
	r.orphans.mu.Lock()
	defer r.orphans.mu.Unlock()
	r.marks.mu.Lock()
	defer r.marks.mu.Unlock()
	r.unwritable.mu.Lock()
	defer r.unwritable.mu.Unlock()
	r.culprits.mu.Lock()
	defer r.culprits.mu.Unlock()
	all := map[string]int{
		"writes": r.writes.Len(), "orphans": len(r.orphans.seen), "marks": len(r.marks.most), "unwritable": len(r.unwritable.seen), "culprits": len(r.culprits.all),
		"conflicts": r.conflicts.size(), "rejections": r.rejections.size(), "resets": r.resets.size(),
	}
	for name, count := range all {
		if count == 0 {
			delete(all, name)
		}
	}
	return all
}

func (m *perObject[T]) size() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.all)
}

// Preview environments are created and deleted while the process runs.
func TestNothingIsRememberedOfWhatIsDeleted(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Healthy().Obj())...)
	s.markedBy(40)
	mgr, r := s.setUp(t, testPlane.RESTConfig(), s.Events, nil)
	tries := 0
	r.APIReader = unlisted{r.APIReader, &tries} // it must stay unknown which marks may be dropped
	s.Expect(r.WatchHelmReleases(s.Ctx)).To(Succeed())
	s.Run(t, mgr)
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying})
	s.Eventually(func() string { return s.carried("shop")["tag"] + s.carried("shop")["VERSION"] }).Should(Equal("1.0.01.0.0"))
	s.fluxApplies()
	s.Eventually(func() []string { return marks(s.check("web")) }).Should(HaveLen(41))

	key := types.NamespacedName{Namespace: s.Namespace, Name: "shop"}
	repository, kustomization := &sourcev1.OCIRepository{}, &kustomizev1.Kustomization{}
	s.Expect(s.Get(s.Ctx, key, repository)).To(Succeed())
	s.Expect(s.Get(s.Ctx, key, kustomization)).To(Succeed())
	all := []client.Object{s.rollout("shop"), s.check("web"), repository, kustomization}
	why := "it is refused"
	remember := func() map[string]int {
		for _, o := range all {
			written := o.DeepCopyObject().(client.Object)
			written.SetResourceVersion("9999999999999999") // as if the cache never showed it
			r.writes.Wrote(written)
			r.resets.put(key, o, &why)
			r.conflicts.put(key, o, &targetConflict{})
			r.rejections.put(key, o, &rejectedWrite{})
		}
		r.unwritable.note(key, "1")
		r.culprits.replace(key, culprits{v1alpha1.SomeGatesBlockingReason: "night"})
		return remembers(r)
	}
	s.Eventually(remember).Should(Equal(map[string]int{ // a running pass may forget some of it
		"writes": len(all), "marks": 1, "unwritable": 1, "culprits": 1, "conflicts": 1, "rejections": 1, "resets": 1,
	}))
	for _, o := range all {
		s.Expect(s.Delete(s.Ctx, o)).To(Succeed())
	}
	s.Eventually(func() map[string]int { return remembers(r) }).Should(BeEmpty())
}
