// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
)

func TestInformerKeepsOnlyWhatShowsAChange(t *testing.T) {
	g := NewWithT(t)
	subject := kustomization.OfHelmRelease(types.NamespacedName{Namespace: "shop", Name: "web"})
	want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "a", ResourceVersion: "1", Labels: subject.Labels(),
	}}
	full := want.DeepCopy()
	full.Labels["app"] = "web"
	full.Annotations = map[string]string{"large": "value"}
	full.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	full.OwnerReferences = []metav1.OwnerReference{{Name: "owner"}}

	got, err := part{by: subject.Kind}.trimmed(full)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal(want))
	again, err := part{by: subject.Kind}.trimmed(got)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(want), "it may be asked twice")
}
