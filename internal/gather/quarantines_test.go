// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// Its namespace is not among the objects: nothing asks for its labels.
func TestQuarantineIsComparedByTheFullNameOfItsImage(t *testing.T) {
	g := NewWithT(t)
	own := &v1alpha1.ReleaseQuarantine{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "bad"}}
	own.Spec.Image, own.Spec.Tags = "docker.io/acme/shop", []string{"1.2.0"}
	recall := &v1alpha1.ClusterReleaseQuarantine{ObjectMeta: metav1.ObjectMeta{Name: "recall"}}
	recall.Spec.Image, recall.Spec.Tags = "acme/shop/", []string{"1.2.0"}
	reader := readerOf(t, append(shop(), own, recall)...)
	s := Gatherer{Client: reader, Live: reader, Quarantines: true}.Gather(t.Context(), running(), fixture.Noon)
	g.Expect(s.Err).NotTo(HaveOccurred())
	images := map[string]string{}
	for _, q := range s.Quarantines.All {
		images[q.Name] = q.Spec.Image
	}
	g.Expect(images).To(Equal(map[string]string{
		"ReleaseQuarantine bad": "index.docker.io/acme/shop", "ClusterReleaseQuarantine recall": "index.docker.io/acme/shop",
	}))
	g.Expect(own.Spec.Image).To(Equal("docker.io/acme/shop"), "objects of the cache stay as they are")
}
