// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/flux/inventory"
)

const (
	// listFrom is the number of objects of a kind and namespace from which one list is
	// cheaper than a get for each.
	listFrom = 4
	// pageSize is how many objects are requested at a time.
	pageSize = 500
)

// reading sends few requests at a time, and counts what it reads.
type reading struct {
	from   client.Reader
	limits Limits
	slots  chan struct{}
	group  sync.WaitGroup

	mu sync.Mutex
	// left is how many more objects may be read.
	left int
}

func newReading(from client.Reader, limits Limits) *reading {
	return &reading{from: from, limits: limits, slots: make(chan struct{}, limits.Requests), left: limits.Objects}
}

// start runs a request as soon as fewer than the allowed number are under way.
func (r *reading) start(request func()) {
	r.group.Go(func() {
		r.slots <- struct{}{}
		defer func() { <-r.slots }()
		request()
	})
}

// wait returns when all requests that were started have ended.
func (r *reading) wait() { r.group.Wait() }

// take takes as many of the wanted objects as may still be read, and returns how many
// that are.
func (r *reading) take(wanted int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := min(wanted, r.left)
	r.left -= taken
	return taken
}

// found is what one read of an object has shown.
type found struct {
	object *unstructured.Unstructured
	err    error
}

// batch is a set of objects of one kind in one namespace.
type batch struct {
	kind      schema.GroupVersionKind
	namespace string
	names     []string
	// having are the labels that one list of all of them can use.
	having client.MatchingLabels
}

// read returns the objects of a batch by name. An object that is not in the list is asked
// for by itself: a user may have removed its labels. Nothing more is asked for once one
// may not be read.
func (r *reading) read(ctx context.Context, b batch) map[string]found {
	all := map[string]found{}
	if len(b.names) >= listFrom {
		r.list(ctx, b, all)
	}
	var refused error
	for _, name := range b.names {
		switch _, known := all[name]; {
		case known:
		case refused != nil:
			all[name] = found{err: refused}
		default:
			all[name] = r.get(ctx, b, name)
			if err := all[name].err; apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
				refused = err
			}
		}
	}
	return all
}

// list adds the objects that have the labels. It adds nothing if it fails: a user who may
// not list may be allowed to get.
func (r *reading) list(ctx context.Context, b batch, all map[string]found) {
	objects, err := r.objects(ctx, b.kind, b.namespace, b.having)
	if err != nil {
		return
	}
	for i := range objects {
		all[objects[i].GetName()] = found{object: &objects[i]}
	}
}

// objects lists the objects of a kind that have labels, page by page, up to the limit of
// what one tree reads.
func (r *reading) objects(
	ctx context.Context, kind schema.GroupVersionKind, namespace string, having client.MatchingLabels,
) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for next := ""; ; {
		page := listOf(kind)
		if err := r.from.List(ctx, page, client.InNamespace(namespace), having, client.Limit(pageSize), client.Continue(next)); err != nil {
			return all, fmt.Errorf("list %s: %w", kind.Kind, err)
		}
		items, err := itemsOf(page, kind)
		all = append(all, items...)
		if next = page.GetContinue(); err != nil || next == "" || len(all) >= r.limits.Objects {
			return all, err
		}
	}
}

// get returns one object, or why it could not be read.
func (r *reading) get(ctx context.Context, b batch, name string) found {
	object := objectOf(b.kind)
	if err := r.from.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: name}, object); err != nil {
		return found{err: err}
	}
	untyped, err := untypedOf(object, b.kind)
	return found{object: untyped, err: err}
}

// objectOf returns what to read an object into: only metadata, if its kind has no health.
func objectOf(kind schema.GroupVersionKind) client.Object {
	if inventory.HasHealth(kind.GroupKind()) {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		return object
	}
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(kind)
	return metadata
}

func listOf(kind schema.GroupVersionKind) client.ObjectList {
	list := kind.GroupVersion().WithKind(kind.Kind + "List")
	if inventory.HasHealth(kind.GroupKind()) {
		objects := &unstructured.UnstructuredList{}
		objects.SetGroupVersionKind(list)
		return objects
	}
	metadata := &metav1.PartialObjectMetadataList{}
	metadata.SetGroupVersionKind(list)
	return metadata
}

func itemsOf(list client.ObjectList, kind schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	err := meta.EachListItem(list, func(item runtime.Object) error {
		untyped, err := untypedOf(item.(client.Object), kind)
		if err == nil {
			all = append(all, *untyped)
		}
		return err
	})
	return all, err
}

func untypedOf(o client.Object, kind schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	if untyped, ok := o.(*unstructured.Unstructured); ok {
		return untyped, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", kind.Kind, o.GetName(), err)
	}
	untyped := &unstructured.Unstructured{Object: content}
	untyped.SetGroupVersionKind(kind)
	return untyped, nil
}

// isSecret reports whether an object is a Secret. Secrets are not read, not even their
// metadata: few users may, and a Secret that is missing shows in the pods that need it.
func isSecret(o Object) bool {
	return o.GroupKind() == corev1.SchemeGroupVersion.WithKind("Secret").GroupKind()
}

// because returns why a read failed, in the words of the API server.
func because(err error) string {
	switch {
	case apierrors.IsNotFound(err):
		return "does not exist"
	case meta.IsNoMatchError(err), runtime.IsNotRegisteredError(err):
		return "the API server does not serve this version of its kind"
	case apierrors.IsForbidden(err):
		return "you may not read it: " + err.Error()
	}
	return "it could not be read: " + err.Error()
}
