// SPDX-License-Identifier: Apache-2.0

package fieldindex_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
)

// store is an informer that only stores indexers.
type store struct {
	toolscache.SharedIndexInformer
	indexers toolscache.Indexers
}

func (s *store) AddIndexers(indexers toolscache.Indexers) error {
	s.indexers = indexers
	return nil
}

// TestAValueIsStoredOnce pins the names with which the lists of controller-runtime look
// up values. The tests of every reconciler that runs in a manager check that the lists
// find them.
func TestAValueIsStoredOnce(t *testing.T) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	values := func(o client.Object) []string { return []string{o.GetName(), "any"} }
	for field, want := range map[string][]string{
		".name":                         {"shop/web", "shop/any"},
		fieldindex.Everywhere + ".name": {"__all_namespaces/web", "__all_namespaces/any"},
	} {
		s := &store{}
		informers := &informertest.FakeInformers{InformersByGVK: map[schema.GroupVersionKind]toolscache.SharedIndexInformer{
			corev1.SchemeGroupVersion.WithKind("ConfigMap"): s,
		}}
		if err := (fieldindex.Indexer{Cache: informers}).IndexField(t.Context(), object, field, values); err != nil {
			t.Fatal(err)
		}
		got, err := s.indexers["field:"+field](object)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", field, err, diff)
		}
	}
}
