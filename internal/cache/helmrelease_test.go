// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
	"github.com/fluxrollouts/rollout-controller/internal/write"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const written = `{"image":{"tag":"1.0.0"}}`

func trimmed(g Gomega, h *helmv2.HelmRelease) *helmv2.HelmRelease {
	for range 2 { // an object may be trimmed more than once
		_, err := new(trimmer).trim(h)
		g.Expect(err).NotTo(HaveOccurred())
	}
	return h
}

// TestWrittenHelmReleaseIsKeptAsFarAsItIsRead lists all that is kept of a HelmRelease with
// a value that a Rollout writes. Its chart is in no OCIRepository.
func TestWrittenHelmReleaseIsKeptAsFarAsItIsRead(t *testing.T) {
	g := NewWithT(t)
	full := laden(fixture.MakeHelmRelease("shop").FromChart("shop").DrivenBy("shop", "image.tag").
		Values(`{"image":{"tag":"1.0.0","name":"shop"},"replicas":3}`).NoWait(false, true).
		ValuesFrom("all", "").ValuesFrom("one", "image.tag").ValuesFrom("other", "replicas").
		Snapshot("7.0.0", "", "superseded").AttemptedAs("7.0.0", "").AttemptedAt(1).AttemptedWith("sha256:2").
		Snapshot("7.0.0", "", "deployed").Requested("now", "before").Ready().Obj()).(*helmv2.HelmRelease)
	own := metav1.ManagedFieldsEntry{
		Manager: write.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate,
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:values":{"f:image":{"f:tag":{}}}}}`),
	}
	full.ManagedFields = append(full.ManagedFields, own)
	full.Status.Inventory = &helmv2.ResourceInventory{Entries: []helmv2.ResourceRef{{ID: "stage_shop_apps_Deployment", Version: "v1"}}}

	kept := fixture.MakeHelmRelease("shop").DrivenBy("shop", "image.tag").Requested("now", "before").Obj()
	kept.TypeMeta, kept.ResourceVersion, kept.ManagedFields = metav1.TypeMeta{}, "7", []metav1.ManagedFieldsEntry{own}
	kept.Spec = helmv2.HelmReleaseSpec{Values: fixture.MakeHelmRelease("").Values(written).Obj().Spec.Values, Upgrade: &helmv2.Upgrade{DisableWait: true}}
	kept.Spec.ValuesFrom = []helmv2.ValuesReference{{TargetPath: "image.tag"}}
	kept.Status = helmv2.HelmReleaseStatus{
		ObservedGeneration: 1, LastAttemptedGeneration: 1, LastAttemptedRevision: "7.0.0", LastAttemptedConfigDigest: "sha256:2",
		Conditions: full.Status.DeepCopy().Conditions,
		History:    helmv2.Snapshots{{Version: 2, Status: "deployed", ChartVersion: "7.0.0", ConfigDigest: "sha256:2"}},
	}
	kept.Status.LastHandledReconcileAt = "before"
	allIsWell(kept.Status.Conditions)
	g.Expect(trimmed(g, full)).To(Equal(kept))
}

func TestRequestThatHelmHasHandledIsNotKept(t *testing.T) {
	g := NewWithT(t)
	h := trimmed(g, fixture.MakeHelmRelease("shop").DrivenBy("shop", "tag").Requested("now", "now").Obj())
	g.Expect(h.Annotations).NotTo(HaveKey(meta.ReconcileRequestAnnotation))
	g.Expect(h.Status.LastHandledReconcileAt).To(BeEmpty())
}

// TestHelmReleaseThatNoRolloutWritesIsKeptWithoutItsValues: a Rollout reads it only
// because of its chart, or not at all.
func TestHelmReleaseThatNoRolloutWritesIsKeptWithoutItsValues(t *testing.T) {
	g := NewWithT(t)
	b := fixture.MakeHelmRelease("shop").Values(written).ValuesFrom("one", "image.tag").AttemptedWith("sha256:2").Deployed(fixture.Revision("1.0.0")).Requested("now", "before")
	charted := trimmed(g, b.Obj())
	g.Expect(charted.Annotations).To(BeEmpty())
	g.Expect(charted.Spec.Values).To(BeNil())
	g.Expect(charted.Spec.ValuesFrom).To(BeEmpty())
	g.Expect(charted.Status.LastAttemptedConfigDigest + charted.Status.History[0].ConfigDigest + charted.Status.LastHandledReconcileAt).To(BeEmpty())

	none := trimmed(g, b.FromChart("shop").Obj())
	g.Expect(none.Spec).To(Equal(helmv2.HelmReleaseSpec{}))
	g.Expect(none.Status).To(Equal(helmv2.HelmReleaseStatus{}))
}

// TestFieldsOfAConsumerAreKeptUntilTheyAreGivenBack: a value was written into it once.
func TestHelmReleaseOfAnArtifactIsKept(t *testing.T) {
	h := fixture.MakeHelmRelease("shop").From(sourcev1.ExternalArtifactKind, "shop").Deployed("1.0.0").Obj()
	trim(h)
	NewWithT(t).Expect(h.Spec.ChartRef).To(HaveField("Name", "shop"))
	NewWithT(t).Expect(h.Status.LastAttemptedRevision).To(Equal("1.0.0"))
}

func TestFieldsOfAConsumerAreKeptUntilTheyAreGivenBack(t *testing.T) {
	g := NewWithT(t)
	h := fixture.MakeHelmRelease("shop").Obj()
	h.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "helm-controller"}, {Manager: write.FieldManager}}
	g.Expect(trimmed(g, h).ManagedFields).To(Equal([]metav1.ManagedFieldsEntry{{Manager: write.FieldManager}}))
}

// TestTooManyWrittenValuesAreNotKept: annotations may name thousands of values.
func TestTooManyWrittenValuesAreNotKept(t *testing.T) {
	g := NewWithT(t)
	b, values := fixture.MakeHelmRelease("shop"), []string{}
	for i := range 2_000 {
		b.DrivenBy("shop", fmt.Sprintf("v%d", i))
		values = append(values, fmt.Sprintf(`"v%d":%q`, i, strings.Repeat("x", 500)))
	}
	h := trimmed(g, b.Values("{"+strings.Join(values, ",")+"}").Obj())
	g.Expect(unreadable.Of(h)).To(HaveOccurred())
	g.Expect(len(h.Spec.Values.Raw)).To(BeNumerically("<=", longestKept))
}
