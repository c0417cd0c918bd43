// SPDX-License-Identifier: Apache-2.0

package fieldindex_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
)

// informers is a cache of ConfigMaps that can only be indexed.
type informers struct {
	cache.Cache
	of toolscache.SharedIndexInformer
}

func (i informers) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return i.of, nil
}

const (
	near = "color"
	far  = fieldindex.Everywhere + "color"
)

// colors are the values of a ConfigMap in both indexes.
func colors(o client.Object) []string {
	var all []string
	for color := range o.(*corev1.ConfigMap).Data {
		all = append(all, color)
	}
	return all
}

// filled returns a cache with objects, which is indexed before it is filled. The returned
// function or the end of the test ends it.
func filled(t *testing.T, objects []*corev1.ConfigMap) (c *fieldindex.Cache, informer toolscache.SharedIndexInformer, end func()) {
	t.Helper()
	source := fcache.NewFakeControllerSource()
	for _, o := range objects {
		source.Add(o)
	}
	created, err := fieldindex.NewCache(func(_ *rest.Config, options cache.Options) (cache.Cache, error) {
		informer = options.NewInformer(source, &corev1.ConfigMap{}, 0, toolscache.Indexers{})
		return informers{of: informer}, nil
	})(nil, cache.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{near, far} {
		if err := created.IndexField(t.Context(), &corev1.ConfigMap{}, field, colors); err != nil {
			t.Fatal(err)
		}
	}
	err = created.List(t.Context(), &corev1.ConfigMapList{}, client.MatchingFields{far: "red"})
	if unfilled := (*cache.ErrCacheNotStarted)(nil); !errors.As(err, &unfilled) {
		t.Errorf("before the cache is filled a list says %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	end = func() { cancel(); running.Wait() }
	t.Cleanup(end)
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the cache is not filled")
	}
	return created.(*fieldindex.Cache), informer, end
}

// many returns objects that share some of their colors, and have one of their own each.
func many(n int) []*corev1.ConfigMap {
	all := make([]*corev1.ConfigMap, n)
	for i := range all {
		all[i] = &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: fmt.Sprintf("shop-%d", i%3), Name: fmt.Sprintf("web-%d", i),
				Labels: map[string]string{"odd": fmt.Sprint(i % 2)},
			},
			Data: map[string]string{fmt.Sprintf("own-%d", i): "", fmt.Sprintf("shared-%d", i%100): ""},
		}
	}
	return all
}

// scan returns the names of the objects that a list is to find.
func scan(all []*corev1.ConfigMap, namespace, color string) []string {
	var names []string
	for _, o := range all {
		if _, has := o.Data[color]; has && (namespace == "" || o.Namespace == namespace) {
			names = append(names, o.Name)
		}
	}
	slices.Sort(names)
	return names
}

func list(t *testing.T, c client.Reader, options ...client.ListOption) []string {
	t.Helper()
	found := &corev1.ConfigMapList{}
	if err := c.List(t.Context(), found, options...); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range found.Items {
		names = append(names, found.Items[i].Name)
	}
	slices.Sort(names)
	return names
}

// With twice as many values as sets, nearly every set has objects that a list must leave
// out.
func TestListsFindWhatASearchFinds(t *testing.T) {
	all := many(8000)
	c, informer, _ := filled(t, all)
	for _, field := range []string{near, far} {
		if sets := len(informer.GetIndexer().ListIndexFuncValues("bucket:" + field)); sets == 0 || sets > 4096 {
			t.Errorf("%s has %d sets", field, sets)
		}
	}
	for _, color := range []string{"own-1", "own-777", "own-7999", "shared-3", "shared-99", "none", ""} {
		if diff := cmp.Diff(scan(all, "", color), list(t, c, client.MatchingFields{far: color})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", color, diff)
		}
		for _, namespace := range []string{"shop-0", "shop-1", "nowhere"} {
			got := list(t, c, client.InNamespace(namespace), client.MatchingFields{near: color})
			if diff := cmp.Diff(scan(all, namespace, color), got); diff != "" {
				t.Errorf("%s in %s (-want +got):\n%s", color, namespace, diff)
			}
		}
	}
	if got := list(t, c, client.MatchingFields{far: "own-7"}, client.MatchingLabels{"odd": "0"}); got != nil {
		t.Errorf("with another label, %v", got)
	}
	if got := list(t, c, client.MatchingFields{far: "shared-7"}, client.Limit(2)); len(got) != 2 {
		t.Errorf("a list of at most two has %v", got)
	}
}

func TestListCopiesUnlessDeepCopyIsDisabled(t *testing.T) {
	stored := many(1)
	c, informer, _ := filled(t, stored)
	kept, _, _ := informer.GetIndexer().GetByKey("shop-0/web-0")
	for _, shared := range []bool{false, true} {
		options := []client.ListOption{client.MatchingFields{far: "own-0"}}
		if shared {
			options = append(options, client.UnsafeDisableDeepCopy)
		}
		found := &corev1.ConfigMapList{}
		if err := c.List(t.Context(), found, options...); err != nil {
			t.Fatal(err)
		}
		found.Items[0].Data["written"] = ""
		if _, seen := kept.(*corev1.ConfigMap).Data["written"]; seen != shared {
			t.Errorf("shared is %v, and a write to the list reaches the cache: %v", shared, seen)
		}
		if kind := found.Items[0].Kind; (kind == "ConfigMap") == shared {
			t.Errorf("shared is %v, and the kind %q", shared, kind)
		}
	}
}

// Such a list would find nothing, and the mistake would pass for an empty answer.
func TestListMustNameANamespaceExactlyWhereTheIndexHasThem(t *testing.T) {
	c, _, _ := filled(t, many(1))
	for field, options := range map[string][]client.ListOption{
		near: nil,
		far:  {client.InNamespace("shop-0")},
	} {
		if err := c.List(t.Context(), &corev1.ConfigMapList{}, append(options, client.MatchingFields{field: "own-0"})...); err == nil {
			t.Errorf("a list by %s with %d more options does not fail", field, len(options))
		}
	}
}

// A pass that runs when the process stops must not take everything for deleted.
func TestCacheThatHasEndedStillAnswers(t *testing.T) {
	c, informer, end := filled(t, many(1))
	end()
	if !informer.IsStopped() {
		t.Error("it has not ended")
	}
	if got := list(t, c, client.MatchingFields{far: "own-0"}); len(got) != 1 {
		t.Errorf("it finds %v", got)
	}
}
