// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/write"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// annotatedBy returns the annotations that a write for an entry sends.
func annotatedBy(t *testing.T, target targets.Target, rollout string, entry *v1alpha1.DeploymentHistoryEntry) map[string]any {
	t.Helper()
	var body []byte
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme(t)).Build(), interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, p client.Patch, _ ...client.PatchOption) (err error) {
			body, err = p.Data(o)
			return err
		},
	})
	g := NewWithT(t)
	g.Expect(target.Write(t.Context(), c, rollout, entry, fixture.Noon)).To(Succeed())
	sent := struct {
		Metadata struct{ Annotations map[string]any }
	}{}
	g.Expect(json.Unmarshal(body, &sent)).To(Succeed())
	delete(sent.Metadata.Annotations, v1alpha1.ReconcileRequestAnnotation)
	return sent.Metadata.Annotations
}

func with(target targets.Target, key, value string) targets.Target {
	annotations := target.Object().GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	target.Object().SetAnnotations(annotations)
	return target
}

func TestWriteCarriesTheIDOfItsEntry(t *testing.T) {
	long := strings.Repeat("a", 200) + ".example"
	withoutID := fixture.MakeEntry("1.1.0").WithoutID().Obj()
	for name, tt := range map[string]struct {
		target  targets.Target
		rollout string
		entry   *v1alpha1.DeploymentHistoryEntry
		want    map[string]any
	}{
		"once for all its variables": {
			kustomization(fixture.MakeKustomization("web").DrivenBy("shop", "A").DrivenBy("shop", "B")), "shop", promoted(),
			map[string]any{"promotion.rollout.kuberik.com/shop": "7"},
		},
		"next to that of another Rollout": {
			with(kustomization(fixture.MakeKustomization("web").DrivenBy("shop", "A").DrivenBy("cart", "B")), "promotion.rollout.kuberik.com/cart", "3"),
			"shop", promoted(), map[string]any{"promotion.rollout.kuberik.com/shop": "7"},
		},
		"instead of that of a Rollout that was renamed": {
			with(repository(fixture.MakeRepository("web").DrivenBy("shop")), "promotion.rollout.kuberik.com/store", "41"),
			"shop", promoted(), map[string]any{"promotion.rollout.kuberik.com/shop": "7", "promotion.rollout.kuberik.com/store": nil},
		},
		"into a HelmRelease": {
			helmRelease(web().DrivenBy("shop", "image.tag").DrivenBy("cart", "cart.tag")), "shop", promoted(),
			map[string]any{"promotion.rollout.kuberik.com/shop": "7"},
		},
		"with a name that is too long for a key": {
			repository(fixture.MakeRepository("web").DrivenBy(long)), long, promoted(),
			map[string]any{"promotion.rollout.kuberik.com/" + strings.Repeat("a", 50) + "-694127bb87a9": "7"},
		},
		"unless another client wrote the entry without one": {
			with(repository(fixture.MakeRepository("web").DrivenBy("shop")), "promotion.rollout.kuberik.com/shop", "3"), "shop", &withoutID,
			map[string]any{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := annotatedBy(t, tt.target, tt.rollout, tt.entry)
			g.Expect(got).To(Equal(tt.want))
			for key := range got {
				g.Expect(validation.IsQualifiedName(key)).To(BeEmpty())
				g.Expect(targets.IsPromotion(key)).To(BeTrue())
			}
		})
	}
}

func TestPromotionOf(t *testing.T) {
	for value, want := range map[string]int64{
		"7": 7, "1772452800": 1772452800, "9007199254740991": 9007199254740991,
		"": 0, "0": 0, "-1": 0, "7.0": 0, "seven": 0, "9007199254740992": 0, "9223372036854775807": 0, "99999999999999999999": 0,
	} {
		target := with(repository(fixture.MakeRepository("web")), "promotion.rollout.kuberik.com/shop", value)
		NewWithT(t).Expect(targets.PromotionOf(target.Object(), "shop")).To(Equal(want), value)
		NewWithT(t).Expect(targets.PromotionOf(target.Object(), "cart")).To(BeZero())
	}
}

// A target that a newer promotion has written proves nothing about an older one, whatever
// Flux says.
func TestObserveTargetOfANewerPromotion(t *testing.T) {
	ready := func() targets.Target {
		return repository(fixture.MakeRepository("web").DrivenBy("shop").Tag("1.0.0").Pulled(fixture.Revision("1.0.0")).Observed(1).Ready())
	}
	shop := fixture.MakeRollout("shop").History(fixture.MakeEntry("1.0.0").ID(2)).Obj()
	for id, want := range map[string]content.Target{
		"2": {State: v1alpha1.TargetApplied, Promotion: 2},
		"1": {State: v1alpha1.TargetApplied, Promotion: 1},
		"":  {State: v1alpha1.TargetApplied},
		"3": {State: v1alpha1.TargetConflict, Promotion: 3, Message: "was written by promotion #3, which the history does not have"},
	} {
		seen := with(ready(), "promotion.rollout.kuberik.com/shop", id).Observe(shop, byTag("1.0.0"))
		NewWithT(t).Expect(content.Target{State: seen.State, Promotion: seen.Promotion, Message: seen.Message}).To(Equal(want), id)
	}
}

const ownsPromotion = `{"f:metadata":{"f:annotations":{"f:promotion.rollout.kuberik.com/shop":{},"f:reconcile.fluxcd.io/requestedAt":{}}},"f:spec":{"f:ref":{"f:tag":{}}}}`

func TestPromotionsAreOurs(t *testing.T) {
	g := NewWithT(t)
	ours := []metav1.ManagedFieldsEntry{updated(write.FieldManager, ownsPromotion)}
	for rollout, tooMuch := range map[string]bool{"shop": false, "cart": true, "": true} {
		target := repository(fixture.MakeRepository("web").DrivenBy(rollout))
		target.Object().SetManagedFields(ours)
		g.Expect(target.OwnsTooMuch()).To(Equal(tooMuch), rollout)
	}
	// In a cache, the ownership of thousands of targets is the same.
	target := repository(fixture.MakeRepository("web").DrivenBy("shop"))
	target.Object().SetManagedFields(ours)
	targets.KeepOwnFields(target.Object())
	g.Expect(target.Object().GetManagedFields()[0].FieldsV1.GetRawString()).To(Equal(
		`{"f:metadata":{"f:annotations":{"f:reconcile.fluxcd.io/requestedAt":{}}},"f:spec":{"f:ref":{"f:tag":{}}}}`))
	g.Expect(target.OwnsTooMuch()).To(BeFalse())
}
