// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fluxrollouts/rollout-controller/internal/cache"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// Data that Flux records in every run wakes no Rollout. Everything that is read does.
func TestUnreadFieldsOfFluxWakeNobody(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*kustomizev1.Kustomization)
		wakes  bool
	}{
		"nothing but the version of the object": {func(*kustomizev1.Kustomization) {}, false},
		"when Flux last looked": {func(k *kustomizev1.Kustomization) {
			k.Status.LastHandledReconcileAt = "now"
			k.Status.History[0].LastReconciled = metav1.Now()
			k.Status.History[0].TotalReconciliations++
		}, false},
		"how often it looks":        {func(k *kustomizev1.Kustomization) { k.Spec.Interval.Duration++ }, false},
		"whom it belongs to":        {func(k *kustomizev1.Kustomization) { k.Labels = map[string]string{"app": "shop"} }, false},
		"that the spec was changed": {func(k *kustomizev1.Kustomization) { k.Generation++ }, true},
		"what it carries":           {func(k *kustomizev1.Kustomization) { k.Spec.PostBuild.Substitute["VERSION"] = "0" }, true},
		"whose it is":               {func(k *kustomizev1.Kustomization) { k.Annotations = nil }, true},
		"that it is suspended":      {func(k *kustomizev1.Kustomization) { k.Spec.Suspend = true }, true},
		"what it consumes":          {func(k *kustomizev1.Kustomization) { k.Spec.SourceRef.Name = "cart" }, true},
		"what is applied":           {func(k *kustomizev1.Kustomization) { k.Status.LastAppliedRevision = "2" }, true},
		"how well it went":          {func(k *kustomizev1.Kustomization) { k.Status.Conditions[0].Message = "applied in 2s" }, false},
		"how it went": {func(k *kustomizev1.Kustomization) {
			k.Status.Conditions[0].Status, k.Status.Conditions[0].Message = metav1.ConditionFalse, "failed"
		}, true},
		"what the controller owns": {func(k *kustomizev1.Kustomization) {
			k.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "rollout-controller", Operation: metav1.ManagedFieldsOperationUpdate}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := fixture.MakeKustomization("shop").DrivenBy("shop", "VERSION").Substitute("VERSION", "1.0.0").Ready().Obj()
			before.ResourceVersion, before.Generation = "7", 1
			before.Status.History = meta.History{{Digest: "sha256:1"}}
			after := before.DeepCopy()
			after.ResourceVersion = "8"
			tt.change(after)
			e := event.UpdateEvent{}
			for _, side := range []struct {
				into *client.Object
				of   client.Object
			}{{&e.ObjectOld, before}, {&e.ObjectNew, after}} {
				kept, err := cache.Options(cache.Setting{}).DefaultTransform(side.of)
				g.Expect(err).NotTo(HaveOccurred())
				*side.into = kept.(client.Object)
			}
			g.Expect(contentChanged().Update(e)).To(Equal(tt.wakes))
			g.Expect(e.ObjectOld.GetResourceVersion()).To(Equal("7"), "the cache's own object stays as it is")
		})
	}
}
