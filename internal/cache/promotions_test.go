// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/write"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// Each key contains the name of a Rollout. The ids are kept, and everything else of these
// objects is still shared.
func TestCachesKeepTheIDsOfPromotions(t *testing.T) {
	g, trimmer := NewWithT(t), new(trimmer)
	var kept []*sourcev1.OCIRepository
	for _, rollout := range []string{"shop", "cart"} {
		key := "promotion.rollout.kuberik.com/" + rollout
		repository := fixture.MakeRepository(rollout).DrivenBy(rollout).Tag("1.0.0").Obj()
		metav1.SetMetaDataAnnotation(&repository.ObjectMeta, key, "7")
		repository.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: write.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate,
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + key + `":{}}},"f:spec":{"f:ref":{"f:tag":{}}}}`),
		}}
		_, err := trimmer.trim(repository)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(targets.PromotionOf(repository, rollout)).To(Equal(int64(7)))
		g.Expect(trimmer.known).NotTo(HaveKey(key))
		kept = append(kept, repository)
	}
	g.Expect(kept[0].ManagedFields[0].FieldsV1).To(BeIdenticalTo(kept[1].ManagedFields[0].FieldsV1))
	g.Expect(kept[0].ManagedFields[0].FieldsV1.GetRawString()).To(Equal(`{"f:spec":{"f:ref":{"f:tag":{}}}}`))
}

// TestCachesKeepHowLongFluxWaits: a rollback waits as long.
func TestCachesKeepHowLongFluxWaits(t *testing.T) {
	waiting := fixture.MakeKustomization("web").DrivenBy("shop", "VERSION").Obj()
	waiting.Spec.Wait, waiting.Spec.Interval.Duration = true, 20*time.Minute
	limited := waiting.DeepCopy()
	limited.Spec.Timeout = &metav1.Duration{Duration: time.Minute}
	upgraded := fixture.MakeHelmRelease("web").Obj()
	upgraded.Spec.Timeout, upgraded.Spec.Upgrade = &metav1.Duration{Duration: time.Hour}, &helmv2.Upgrade{Timeout: &metav1.Duration{Duration: time.Minute}}
	for name, target := range map[string]targets.Target{
		"an interval": {Kustomization: waiting}, "a timeout": {Kustomization: limited}, "no health": {Kustomization: fixture.MakeKustomization("web").Obj()},
		"an upgrade": {HelmRelease: upgraded}, "the default of Helm": {HelmRelease: fixture.MakeHelmRelease("web").Obj()},
	} {
		t.Run(name, func(t *testing.T) {
			g, rollout := NewWithT(t), fixture.MakeRollout("shop").Obj()
			want := target.Observe(rollout, targets.Release{Tag: "1.0.0"}).Waits
			for range 2 { // an object may be trimmed more than once
				_, err := new(trimmer).trim(target.Object())
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(target.Observe(rollout, targets.Release{Tag: "1.0.0"}).Waits).To(Equal(want))
		})
	}
}
