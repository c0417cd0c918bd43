// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
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

func quarantineIn(namespace, name, manager string) *v1alpha1.ReleaseQuarantine {
	q := &v1alpha1.ReleaseQuarantine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	q.Labels, q.Spec.Digest = map[string]string{v1alpha1.ManagedByLabel: manager}, "sha256:bad"
	return q
}

// A tenant that writes thousands of quarantines slows down nobody else: those of other
// namespaces are not even read.
func TestQuarantinesOfTheNamespaceOnly(t *testing.T) {
	const theirs = "theirs"
	for name, test := range map[string]struct {
		everywhere bool
		listed     string
		want       []string
	}{
		"of its own namespace":        {false, fixture.Namespace, []string{"ClusterReleaseQuarantine all", "ReleaseQuarantine mine"}},
		"of all, if all are to count": {true, "", []string{"ClusterReleaseQuarantine all", "ReleaseQuarantine mine", "ReleaseQuarantine theirs/a", "ReleaseQuarantine theirs/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var listed []string
			c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme(g)).WithObjects(
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.Namespace, Labels: map[string]string{"team": "web"}}},
				quarantineIn(fixture.Namespace, "mine", promotion.SystemName), quarantineIn(theirs, "a", "them"), quarantineIn(theirs, "b", "them"),
				recall("all", nil), recall("others", map[string]string{"team": "data"}),
			).Build(), interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if _, ok := list.(*v1alpha1.ReleaseQuarantineList); ok {
					listed = append(listed, (&client.ListOptions{}).ApplyOptions(options).Namespace)
				}
				return c.List(ctx, list, options...)
			}})
			s := &Snapshot{}
			s.Rollout = fixture.MakeRollout("shop").Obj()
			g.Expect(Gatherer{Client: c, Quarantines: true, QuarantinesEverywhere: test.everywhere}.gatherQuarantines(t.Context(), s)).To(Succeed())
			var names []string
			for _, q := range s.Quarantines.All {
				names = append(names, q.Name)
				g.Expect(q.Managed).To(Equal(q.Name == "ReleaseQuarantine mine"), q.Name)
			}
			g.Expect(names).To(Equal(test.want))
			g.Expect(listed).To(Equal([]string{test.listed}))
		})
	}
}

func recall(name string, labels map[string]string) *v1alpha1.ClusterReleaseQuarantine {
	q := &v1alpha1.ClusterReleaseQuarantine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if q.Spec.Digest = "sha256:bad"; labels != nil {
		q.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: labels}
	}
	return q
}
