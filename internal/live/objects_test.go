// SPDX-License-Identifier: Apache-2.0

package live_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/fluxrollouts/rollout-controller/internal/live"
)

func mappingOf(group, resource, kind string, scope apimeta.RESTScope) *apimeta.RESTMapping {
	version := schema.GroupVersion{Group: group, Version: "v1"}
	return &apimeta.RESTMapping{Resource: version.WithResource(resource), GroupVersionKind: version.WithKind(kind), Scope: scope}
}

var (
	jobs  = mappingOf("batch", "jobs", "Job", apimeta.RESTScopeNamespace)
	pods  = mappingOf("", "pods", "Pod", apimeta.RESTScopeNamespace)
	nodes = mappingOf("", "nodes", "Node", apimeta.RESTScopeRoot)
)

// serve answers as an API server does, and records the requests.
func serve(t *testing.T, answer http.HandlerFunc) (objects *live.Objects, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		*asked = append(*asked, r.URL.String())
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	objects, err := live.NewObjects(&rest.Config{Host: server.URL, QPS: -1}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return objects, asked
}

func TestObjectsAreAskedForWhereTheyAre(t *testing.T) {
	objects, asked := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"kind":"Any"}`) })
	for _, tt := range []struct {
		kind *apimeta.RESTMapping
		key  types.NamespacedName
	}{
		{jobs, types.NamespacedName{Namespace: "shop", Name: "load"}},
		{pods, types.NamespacedName{Namespace: "shop", Name: "web"}},
		{nodes, types.NamespacedName{Name: "one"}},
	} {
		got := ""
		err := objects.Get(t.Context(), tt.kind, tt.key, func(raw json.RawMessage) error {
			got = string(raw)
			return nil
		})
		if err != nil || got != `{"kind":"Any"}` {
			t.Errorf("%s: %s, %v", tt.key, got, err)
		}
	}
	if err := objects.Get(t.Context(), jobs, types.NamespacedName{Name: "load"}, nil); !apierrors.IsNotFound(err) {
		t.Errorf("an object without the namespace that it must have: %v", err)
	}
	want := []string{"/apis/batch/v1/namespaces/shop/jobs/load", "/api/v1/namespaces/shop/pods/web", "/api/v1/nodes/one"}
	if diff := cmp.Diff(want, *asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestRefusalOfTheAPIServerIsItsError(t *testing.T) {
	objects, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	})
	if err := objects.Get(t.Context(), jobs, types.NamespacedName{Namespace: "shop", Name: "load"}, nil); !apierrors.IsForbidden(err) {
		t.Errorf("get: %v", err)
	}
	if err := objects.Select(t.Context(), jobs, "shop", labels.SelectorFromSet(nil), 500, nil); !apierrors.IsForbidden(err) {
		t.Errorf("list: %v", err)
	}
}

func TestListIsReadToItsEnd(t *testing.T) {
	pages := map[string]string{
		"":     `{"kind":"JobList","metadata":{"continue":"more"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`,
		"more": `{"items":[{"metadata":{"name":"c"}}],"metadata":{"resourceVersion":"7","continue":"none"}}`,
		"none": `{"kind":"JobList","metadata":{},"items":[]}`,
	}
	objects, asked := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, pages[r.URL.Query().Get("continue")])
	})
	var names []string
	err := objects.Select(t.Context(), jobs, "shop", labels.SelectorFromSet(labels.Set{"app": "shop"}), 500, func(raw json.RawMessage) error {
		names = append(names, string(raw))
		return nil
	})
	if diff := cmp.Diff([]string{`{"metadata":{"name":"a"}}`, `{"metadata":{"name":"b"}}`, `{"metadata":{"name":"c"}}`}, names); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if first := "/apis/batch/v1/namespaces/shop/jobs?labelSelector=app%3Dshop&limit=500"; len(*asked) != 3 || (*asked)[0] != first {
		t.Errorf("asked for %v", *asked)
	}
}

func TestListThatBreaksOffIsAnError(t *testing.T) {
	objects, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"items":[{}`) })
	if err := objects.Select(t.Context(), jobs, "shop", labels.SelectorFromSet(nil), 500, func(json.RawMessage) error { return nil }); err == nil {
		t.Error("it is taken for a list")
	}
}

// TestOneLargeObjectIsInMemory: many workers read objects of tenants at the same time.
func TestOneLargeObjectIsInMemory(t *testing.T) {
	big := `{"spec":"` + strings.Repeat("x", 200<<10) + `"}`
	objects, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/small"):
			_, _ = io.WriteString(w, `{}`)
		case strings.HasSuffix(r.URL.Path, "/jobs"):
			_, _ = io.WriteString(w, `{"items":[{},`+big+`,{},`+big+`]}`)
		default:
			_, _ = io.WriteString(w, big)
		}
	})
	get := func(ctx context.Context, name string, do func(json.RawMessage) error) error {
		return objects.Get(ctx, jobs, types.NamespacedName{Namespace: "shop", Name: name}, do)
	}
	var now, most, seen atomic.Int32
	count := func(raw json.RawMessage) error {
		if len(raw) < len(big) {
			return nil
		}
		seen.Add(1)
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		if err := get(t.Context(), "small", ignored); err != nil {
			t.Errorf("a small object waits for a large one: %v", err)
		}
		brief, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := get(brief, "other", ignored); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("another large object: %v", err)
		}
		return nil
	}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if err := get(t.Context(), "load", count); err != nil {
				t.Error(err)
			}
		})
		wait.Go(func() {
			if err := objects.Select(t.Context(), jobs, "shop", labels.Everything(), 500, count); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if most.Load() != 1 || seen.Load() != 3*8 {
		t.Errorf("%d large objects were seen, up to %d at a time", seen.Load(), most.Load())
	}
}

func ignored(json.RawMessage) error { return nil }
