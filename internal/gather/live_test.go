// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// largeReader adds a megabyte to what it reads, and measures how much is in use meanwhile.
type largeReader struct {
	client.Reader
	begin, most uint64
}

func (r *largeReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	now := inUse()
	r.most = max(r.most, now-min(now, r.begin))
	err := r.Reader.Get(ctx, key, o, options...)
	if k, ok := o.(*kustomizev1.Kustomization); ok {
		k.Spec.Patches = []kustomize.Patch{{Patch: strings.Repeat("x", 1<<20)}}
	}
	return err
}

func inUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestConfirmHoldsNoWholeTargets: ten workers may confirm at the same time, and a tenant may
// have a hundred targets.
func TestConfirmHoldsNoWholeTargets(t *testing.T) {
	const targets, most = 40, 8 << 20
	g := NewWithT(t)
	objects := shop()
	for i := range targets {
		objects = append(objects, fixture.MakeKustomization(fmt.Sprint("web-", i)).DrivenBy("shop", "VERSION").Substitute("VERSION", "1.0.0").Obj())
	}
	reader := readerOf(t, objects...)
	large := &largeReader{Reader: reader}
	gatherer := Gatherer{Client: reader, Live: large}
	s := gatherer.Gather(t.Context(), running(), fixture.Noon)
	g.Expect(s.Err).NotTo(HaveOccurred())
	large.begin = inUse()
	g.Expect(gatherer.Confirm(t.Context(), &s)).To(Succeed())
	g.Expect(s.Targets.All).To(HaveLen(targets + 1))
	g.Expect(large.most).To(BeNumerically("<", most), "bytes in use")
}

// TestConfirmedCheckSharesWithTheCache: what is as in the cache is in memory once.
func TestConfirmedCheckSharesWithTheCache(t *testing.T) {
	g := NewWithT(t)
	cached := fixture.MakeHealthCheck("web").Healthy().Obj()
	cached.Labels, cached.Annotations, cached.Spec.Class = map[string]string{"app": "shop"}, map[string]string{"a": "b"}, new("http")
	live := cached.DeepCopy()
	live.Status.Status = v1alpha1.HealthStatusUnhealthy
	got := sharing(*live, cached)
	g.Expect(got).To(Equal(*live))
	g.Expect(got.Spec.Class).To(BeIdenticalTo(cached.Spec.Class))
	cached.Labels["more"], got.Annotations["more"] = "x", "y"
	g.Expect(got.Labels).To(HaveKey("more"))
	g.Expect(cached.Annotations).To(HaveKey("more"))
}
