// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// remembered is a client with a memory, and what reads through it.
type remembered struct {
	*gomega.WithT
	client.WithWatch

	cached client.Client
	// another is the client of a manager.
	another client.Client
	// asked counts the reads that were not answered by the memory.
	asked int
}

func openMemory(t *testing.T, objects ...client.Object) *remembered {
	t.Helper()
	r := &remembered{WithT: gomega.NewWithT(t)}
	stored := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Rollout{}).Build()
	live := newRemembering(interceptor.NewClient(stored, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			r.asked++
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			r.asked++
			return c.List(ctx, list, opts...)
		},
	}))
	r.WithWatch, r.cached, r.another = live, Indexes{}.Cached(live), live.memory.through(stored)
	return r
}

// seen returns the tags that Rollout shop wants, as it is read in three ways: among those of
// its namespace, among all, and alone; empty where it is not there. The test itself sees the
// same.
func (r *remembered) seen() [3]string {
	cached := r.through(r.cached)
	r.Expect(r.through(r.WithWatch)).To(gomega.Equal(cached))
	return cached
}

func (r *remembered) through(c client.Client) [3]string {
	own, all, alone := &v1alpha1.RolloutList{}, &v1alpha1.RolloutList{}, &v1alpha1.Rollout{}
	r.Expect(c.List(context.Background(), own, client.InNamespace(fixture.Namespace))).To(gomega.Succeed())
	r.Expect(c.List(context.Background(), all)).To(gomega.Succeed())
	err := c.Get(context.Background(), client.ObjectKeyFromObject(shop("")), alone)
	r.Expect(client.IgnoreNotFound(err)).To(gomega.Succeed())
	return [3]string{pinOf(own.Items), pinOf(all.Items), alone.Pinned()}
}

func pinOf(all []v1alpha1.Rollout) string {
	for i := range all {
		if all[i].Name == "shop" {
			return all[i].Pinned()
		}
	}
	return ""
}

func shop(pinned string) *v1alpha1.Rollout { return fixture.MakeRollout("shop").Pin(pinned).Obj() }

func TestMemoryAnswersUntilSomethingIsWritten(t *testing.T) {
	for name, write := range map[string]func(*remembered) error{
		"updated": func(r *remembered) error {
			stored := &v1alpha1.Rollout{}
			r.Expect(r.Get(t.Context(), client.ObjectKeyFromObject(shop("")), stored)).To(gomega.Succeed())
			stored.Spec.WantedVersion = shop("2.0.0").Spec.WantedVersion
			return r.Update(t.Context(), stored)
		},
		"patched": func(r *remembered) error {
			return r.Patch(t.Context(), shop(""), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"wantedVersion":"2.0.0"}}`)))
		},
		"patched by what reads": func(r *remembered) error {
			return r.cached.Patch(t.Context(), shop(""), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"wantedVersion":"2.0.0"}}`)))
		},
		"patched by a manager": func(r *remembered) error {
			return r.another.Patch(t.Context(), shop(""), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"wantedVersion":"2.0.0"}}`)))
		},
		"deleted and created": func(r *remembered) error {
			r.Expect(r.DeleteAllOf(t.Context(), shop(""), client.InNamespace(fixture.Namespace))).To(gomega.Succeed())
			r.Expect(r.seen()).To(gomega.Equal([3]string{}))
			return r.Create(t.Context(), shop("2.0.0"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := openMemory(t, shop("1.0.0"))
			r.Expect(r.seen()).To(gomega.Equal([3]string{"1.0.0", "1.0.0", "1.0.0"}))
			asked := r.asked
			r.Expect(r.seen()).To(gomega.Equal([3]string{"1.0.0", "1.0.0", "1.0.0"}))
			r.Expect(r.asked).To(gomega.Equal(asked))
			r.Expect(write(r)).To(gomega.Succeed())
			r.Expect(r.seen()).To(gomega.Equal([3]string{"2.0.0", "2.0.0", "2.0.0"}))
		})
	}
}

func TestMemoryKnowsOfWritesToAStatus(t *testing.T) {
	r := openMemory(t, shop("1.0.0"))
	r.seen()
	asked := r.asked
	r.Expect(r.Status().Patch(t.Context(), shop(""), client.RawPatch(types.MergePatchType, []byte(`{"status":{"title":"new"}}`)))).To(gomega.Succeed())
	r.seen()
	r.Expect(r.asked).To(gomega.Equal(asked + 3))
}

func TestNothingIsRememberedWhereAManagerWrites(t *testing.T) {
	r := openMemory(t, shop("1.0.0"))
	memoryOf(r.WithWatch).distrust(fixture.Namespace)
	for range 2 {
		r.asked = 0
		r.Expect(r.Get(t.Context(), client.ObjectKeyFromObject(shop("")), &v1alpha1.Rollout{})).To(gomega.Succeed())
		r.Expect(r.List(t.Context(), &v1alpha1.RolloutList{}, client.InNamespace(fixture.Namespace))).To(gomega.Succeed())
		r.Expect(r.asked).To(gomega.Equal(2))
	}
}

// TestWhatIsReadMayBeChanged: reconcilers change what they have read before they write it.
func TestWhatIsReadMayBeChanged(t *testing.T) {
	r := openMemory(t, shop("1.0.0"))
	list, one := &v1alpha1.RolloutList{}, &v1alpha1.Rollout{}
	for _, c := range []client.Client{r.cached, r.cached, r.WithWatch, r.WithWatch} {
		r.Expect(c.List(t.Context(), list)).To(gomega.Succeed())
		r.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(shop("")), one)).To(gomega.Succeed())
		r.Expect([]string{pinOf(list.Items), one.Pinned()}).To(gomega.Equal([]string{"1.0.0", "1.0.0"}))
		*list.Items[0].Spec.WantedVersion, *one.Spec.WantedVersion = "changed", "changed"
	}
}
