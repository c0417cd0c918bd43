// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func pod(namespace, name, node string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

const byNode = ".spec.nodeName"

// four returns a snapshot of four pods, with an index of their nodes.
func four(t *testing.T) *snapshot.Snapshot {
	t.Helper()
	web := map[string]string{"app": "web"}
	s, err := snapshot.New(scheme(t),
		pod("b", "two", "n1", nil), pod("b", "one", "n1", web), pod("a", "two", "n2", web), pod("a", "one", "n1", nil))
	if err != nil {
		t.Fatal(err)
	}
	err = s.IndexField(t.Context(), &corev1.Pod{}, byNode, func(o client.Object) []string {
		return []string{o.(*corev1.Pod).Spec.NodeName}
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestListSelectsAndSorts(t *testing.T) {
	for name, tt := range map[string]struct {
		options []client.ListOption
		want    []string
	}{
		"everything":            {nil, []string{"a/one", "a/two", "b/one", "b/two"}},
		"a namespace":           {[]client.ListOption{client.InNamespace("b")}, []string{"b/one", "b/two"}},
		"labels":                {[]client.ListOption{client.MatchingLabels{"app": "web"}}, []string{"a/two", "b/one"}},
		"a field":               {[]client.ListOption{client.MatchingFields{byNode: "n1"}}, []string{"a/one", "b/one", "b/two"}},
		"a field, in one":       {[]client.ListOption{client.MatchingFields{byNode: "n1"}, client.InNamespace("b")}, []string{"b/one", "b/two"}},
		"a field that none has": {[]client.ListOption{client.MatchingFields{byNode: "n3"}}, nil},
		"a limit counts not":    {[]client.ListOption{client.Limit(1), client.InNamespace("a")}, []string{"a/one", "a/two"}},
	} {
		t.Run(name, func(t *testing.T) {
			pods, metadata := &corev1.PodList{}, &metav1.PartialObjectMetadataList{}
			metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
			for _, list := range []client.ObjectList{pods, metadata} {
				if err := four(t).List(t.Context(), list, tt.options...); err != nil {
					t.Fatal(err)
				}
			}
			var whole, partial []string
			for i := range pods.Items {
				whole = append(whole, client.ObjectKeyFromObject(&pods.Items[i]).String())
			}
			for i := range metadata.Items {
				partial = append(partial, client.ObjectKeyFromObject(&metadata.Items[i]).String())
			}
			if diff := cmp.Diff(tt.want, whole); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, partial); diff != "" {
				t.Errorf("their metadata (-want +got):\n%s", diff)
			}
		})
	}
}

func TestListWithoutTheIndexIsAnError(t *testing.T) {
	for name, options := range map[string]client.ListOption{
		"another field": client.MatchingFields{"other": "n1"},
		"two fields":    client.MatchingFields{byNode: "n1", "other": "n1"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := four(t).List(t.Context(), &corev1.PodList{}, options); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestGetReturnsACopyOrNotFound(t *testing.T) {
	s := four(t)
	got := &corev1.Pod{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "one"}, got); err != nil {
		t.Fatal(err)
	}
	if got.Spec.NodeName != "n1" {
		t.Errorf("got node %q", got.Spec.NodeName)
	}
	got.Spec.NodeName = "changed"
	again := &corev1.Pod{}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(got), again); err != nil || again.Spec.NodeName != "n1" {
		t.Errorf("after a change of the copy: node %q, error %v", again.Spec.NodeName, err)
	}
	metadata := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "b", Name: "one"}, metadata); err != nil || metadata.Labels["app"] != "web" {
		t.Errorf("metadata: labels %v, error %v", metadata.Labels, err)
	}
	for _, missing := range []client.Object{&corev1.Pod{}, &corev1.Service{}} {
		err := s.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "three"}, missing)
		if !apierrors.IsNotFound(err) {
			t.Errorf("%T: got %v, want NotFound", missing, err)
		}
	}
}

func TestFailedKindAnswersWithItsError(t *testing.T) {
	s := four(t)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
	if err := s.Fail(&corev1.PodList{}, forbidden); err != nil {
		t.Fatal(err)
	}
	if err := s.List(t.Context(), &corev1.PodList{}); !errors.Is(err, forbidden) {
		t.Errorf("list: %v", err)
	}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "one"}, &corev1.Pod{}); !errors.Is(err, forbidden) {
		t.Errorf("get: %v", err)
	}
}

func TestOverlayLeavesTheSnapshotAsItIs(t *testing.T) {
	before := four(t)
	with, err := before.With(pod("a", "one", "n9", nil), pod("c", "one", "n1", nil))
	if err != nil {
		t.Fatal(err)
	}
	without, err := with.Without(pod("b", "one", "", nil), pod("b", "two", "", nil))
	if err != nil {
		t.Fatal(err)
	}
	one := client.ObjectKey{Namespace: "b", Name: "one"}
	if err := with.FailOne(pod(one.Namespace, one.Name, "", nil), errors.New("refused")); err != nil {
		t.Fatal(err)
	}
	if err := before.Get(t.Context(), one, &corev1.Pod{}); err != nil {
		t.Errorf("a failure in the overlay reached the snapshot: %v", err)
	}
	for name, tt := range map[string]struct {
		of   *snapshot.Snapshot
		want []string
	}{
		"before":  {before, []string{"a/one", "b/one", "b/two"}},
		"with":    {with, []string{"b/one", "b/two", "c/one"}},
		"without": {without, []string{"c/one"}},
	} {
		if diff := cmp.Diff(tt.want, onNode(t, tt.of, "n1")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func onNode(t *testing.T, r client.Reader, node string) (names []string) {
	t.Helper()
	list := &corev1.PodList{}
	if err := r.List(context.Background(), list, client.MatchingFields{byNode: node}); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		names = append(names, client.ObjectKeyFromObject(&list.Items[i]).String())
	}
	return names
}

func TestTypeThatTheSchemeDoesNotKnowIsAnError(t *testing.T) {
	if _, err := snapshot.New(runtime.NewScheme(), &corev1.Pod{}); err == nil {
		t.Error("a pod was taken without its scheme")
	}
}

// TestObjectIsReadWithoutItsType also verifies that a change of what was read leaves the
// snapshot as it is.
func TestObjectIsReadWithoutItsType(t *testing.T) {
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": "a", "name": "one"},
		"spec":     map[string]any{"nodeName": "n3"},
	}}
	s, err := four(t).With(widget)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		kind schema.GroupVersionKind
		node string
	}{
		"an object of a Go type":        {corev1.SchemeGroupVersion.WithKind("Pod"), "n1"},
		"an object that never had one":  {widget.GroupVersionKind(), "n3"},
		"the same after another's read": {widget.GroupVersionKind(), "n3"},
	} {
		t.Run(name, func(t *testing.T) {
			one, list := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
			one.SetGroupVersionKind(tt.kind)
			list.SetGroupVersionKind(tt.kind.GroupVersion().WithKind(tt.kind.Kind + "List"))
			if err := s.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "one"}, one); err != nil {
				t.Fatal(err)
			}
			if err := s.List(t.Context(), list, client.InNamespace("a")); err != nil {
				t.Fatal(err)
			}
			for from, got := range map[string]*unstructured.Unstructured{"get": one, "list": &list.Items[0]} {
				node, _, _ := unstructured.NestedString(got.Object, "spec", "nodeName")
				if node != tt.node || got.GroupVersionKind() != tt.kind {
					t.Errorf("%s: a %s on node %q, want a %s on %q", from, got.GroupVersionKind(), node, tt.kind, tt.node)
				}
				if err := unstructured.SetNestedField(got.Object, "changed", "spec", "nodeName"); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
