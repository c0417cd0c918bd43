// SPDX-License-Identifier: Apache-2.0

package live_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fluxrollouts/rollout-controller/internal/cache"
	"github.com/fluxrollouts/rollout-controller/internal/live"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
	"github.com/fluxrollouts/rollout-controller/test/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// reader returns a Reader of what a server answers, and the requests with what they accept.
func reader(t *testing.T, answer http.HandlerFunc) (r *live.Reader, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accept, _, _ := strings.Cut(r.Header.Get("Accept"), ";g=")
		*asked = append(*asked, r.URL.String()+" "+accept)
		w.Header().Set("Content-Type", "application/json")
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	objects, err := live.NewObjects(&rest.Config{Host: server.URL, QPS: -1}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	mapper := apimeta.NewDefaultRESTMapper([]schema.GroupVersion{kustomizev1.GroupVersion})
	mapper.Add(kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind), apimeta.RESTScopeNamespace)
	return live.NewReader(objects, env.Scheme(), mapper, cache.Options(cache.Setting{})), asked
}

// patched returns a Kustomization that a Rollout writes, with a patch of some bytes.
func patched(name string, size int) *kustomizev1.Kustomization {
	k := fixture.MakeKustomization(name).DrivenBy("shop", "VERSION").Substitute("VERSION", "1.0.0").Substitute("OTHER", "x").Obj()
	k.TypeMeta = metav1.TypeMeta{APIVersion: kustomizev1.GroupVersion.String(), Kind: kustomizev1.KustomizationKind}
	k.Spec.Patches = []kustomize.Patch{{Patch: strings.Repeat("x", size)}}
	return k
}

func write(t *testing.T, w io.Writer, o any) {
	t.Helper()
	if err := json.NewEncoder(w).Encode(o); err != nil {
		t.Error(err)
	}
}

// TestReaderKeepsWhatTheCacheKeeps: then a decision reads the same fields from both.
func TestReaderKeepsWhatTheCacheKeeps(t *testing.T) {
	r, asked := reader(t, func(w http.ResponseWriter, _ *http.Request) { write(t, w, patched("web", 1<<20)) })
	got := &kustomizev1.Kustomization{}
	if err := r.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, got); err != nil {
		t.Fatal(err)
	}
	cached, err := cache.Options(cache.Setting{}).DefaultTransform(patched("web", 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cached, got, cmp.Comparer(func(a, b metav1.Time) bool { return a.Equal(&b) })); diff != "" || len(got.Spec.Patches) > 0 {
		t.Errorf("(-cached +live):\n%s", diff)
	}
	if want := "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/shop/kustomizations/web application/json"; (*asked)[0] != want {
		t.Errorf("asked for %v", *asked)
	}
}

// TestReaderHoldsNoWholeObjects: a tenant can create some hundred objects of a megabyte
// each.
func TestReaderHoldsNoWholeObjects(t *testing.T) {
	const count, most = 100, 8 << 20
	r, _ := reader(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"7"},"items":[`)
		for i := range count {
			if i > 0 {
				_, _ = io.WriteString(w, ",")
			}
			write(t, w, patched(fmt.Sprint("web-", i), 1<<20))
		}
		_, _ = io.WriteString(w, `]}`)
	})
	before, list := inUse(), &kustomizev1.KustomizationList{}
	if err := r.List(t.Context(), list, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	if after := inUse(); after > before+most {
		t.Errorf("%d MiB are in use after a list of %d MiB, %d before", after>>20, count, before>>20)
	}
	if len(list.Items) != count || list.ResourceVersion != "7" || list.Items[99].Spec.PostBuild.Substitute["VERSION"] != "1.0.0" {
		t.Errorf("%d items of version %s, the last is %v", len(list.Items), list.ResourceVersion, list.Items[99])
	}
}

func inUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestObjectThatNoCacheCanKeepIsUnreadable: what is read must have a bound, too.
func TestObjectThatNoCacheCanKeepIsUnreadable(t *testing.T) {
	k := patched("web", 0)
	k.Spec.PostBuild.Substitute["VERSION"] = strings.Repeat("x", 1<<20)
	r, _ := reader(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/web") {
			write(t, w, k)
		} else {
			write(t, w, kustomizev1.KustomizationList{Items: []kustomizev1.Kustomization{*patched("other", 0), *k}})
		}
	})
	if err := r.Get(t.Context(), client.ObjectKeyFromObject(k), &kustomizev1.Kustomization{}); unreadable.Because(err) == nil {
		t.Errorf("get: %v", err)
	}
	list := &kustomizev1.KustomizationList{}
	if err := r.List(t.Context(), list, client.InNamespace("shop")); unreadable.Because(err) == nil {
		t.Errorf("list: %v", err)
	}
	if err := r.List(t.Context(), list, client.InNamespace("shop"), unreadable.Left{}); err != nil || len(list.Items) != 2 {
		t.Errorf("list with what is left: %d items, %v", len(list.Items), err)
	}
}

func TestListEndsAtItsLimit(t *testing.T) {
	pages := map[string]string{
		"":     `{"metadata":{"continue":"more"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`,
		"more": `{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"c"}}]}`,
	}
	r, asked := reader(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, pages[r.URL.Query().Get("continue")])
	})
	for _, tt := range []struct {
		options []client.ListOption
		want    string
	}{
		{[]client.ListOption{client.MatchingLabels{"app": "shop"}}, "a b c"},
		{[]client.ListOption{client.Limit(2)}, "a b, then more"},
		{[]client.ListOption{client.Limit(2), client.Continue("more")}, "c"},
	} {
		list, got := &kustomizev1.KustomizationList{}, ""
		if err := r.List(t.Context(), list, tt.options...); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			got += " " + list.Items[i].Name
		}
		if list.Continue != "" {
			got += ", then " + list.Continue
		}
		if got[1:] != tt.want {
			t.Errorf("got%s, want %s", got, tt.want)
		}
	}
	all := "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations"
	want := []string{
		all + "?labelSelector=app%3Dshop&limit=500 application/json", all + "?continue=more&labelSelector=app%3Dshop&limit=500 application/json",
		all + "?limit=2 application/json", all + "?continue=more&limit=2 application/json",
	}
	if diff := cmp.Diff(want, *asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestMetadataAloneIsAskedFor: the API server leaves the rest out.
func TestMetadataAloneIsAskedFor(t *testing.T) {
	r, asked := reader(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"items":[{"metadata":{"name":"a","uid":"7","annotations":{"a":"b"}}}]}`)
	})
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind + "List"))
	if err := r.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].UID != "7" || list.Items[0].Annotations != nil {
		t.Errorf("got %v", list.Items)
	}
	if !strings.HasSuffix((*asked)[0], " application/json;as=PartialObjectMetadataList") {
		t.Errorf("asked for %v", *asked)
	}
}

func TestReaderKeepsTransformsOfItsCaller(t *testing.T) {
	r, _ := reader(t, func(w http.ResponseWriter, _ *http.Request) { write(t, w, patched("web", 1)) })
	named := r.Keeping(map[client.Object]ctrlcache.ByObject{&kustomizev1.Kustomization{}: {Transform: func(o any) (any, error) {
		return &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Name: o.(client.Object).GetName()}}, nil
	}}})
	got := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "old"}}
	if err := named.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := r.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, got); err != nil || got.Spec.PostBuild == nil {
		t.Errorf("the other reader keeps %v, %v", got, err)
	}
}

func TestReaderReturnsTheErrorsOfTheAPIServer(t *testing.T) {
	r, _ := reader(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	})
	if err := r.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, &kustomizev1.Kustomization{}); !apierrors.IsNotFound(err) {
		t.Errorf("get: %v", err)
	}
	if err := r.List(t.Context(), &kustomizev1.KustomizationList{}); !apierrors.IsNotFound(err) {
		t.Errorf("list: %v", err)
	}
}

// TestOwnersOfFields: managedFields may be as large as the object.
func TestOwnersOfFields(t *testing.T) {
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Apply", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	k := patched("web", 1)
	k.ManagedFields = []metav1.ManagedFieldsEntry{
		entry("other", `{"f:spec":{"f:path":{},"f:wait":{}}}`), entry("none", `{"f:spec":{"f:patches":{}}}`),
		entry("own", `{"f:spec":{"f:path":{},"f:wait":{}}}`),
	}
	r, _ := reader(t, func(w http.ResponseWriter, _ *http.Request) { write(t, w, k) })
	got := &kustomizev1.Kustomization{}
	owners := live.OwnersOf(fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "path")), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "own" })
	if err := r.Get(t.Context(), client.ObjectKeyFromObject(k), got, owners); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, e := range got.ManagedFields {
		fields := ""
		if e.FieldsV1 != nil {
			fields = e.FieldsV1.GetRawString()
		}
		seen = append(seen, e.Manager+" "+fields)
	}
	want := []string{`other {"f:spec":{"f:path":{}}}`, `none `, `own {"f:spec":{"f:path":{},"f:wait":{}}}`}
	if diff := cmp.Diff(want, seen); diff != "" || len(got.Spec.Patches) > 0 {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}
