// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	"context"
	"errors"
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listFrom is how many objects of a kind and namespace make one list cheaper
// than as many gets.
const listFrom = 4

// perPage is how many objects a list brings at a time.
const perPage = 100

// The labels by which Flux says which Kustomization applied an object.
var (
	OwnerNameLabel      = kustomizev1.GroupVersion.Group + "/name"
	OwnerNamespaceLabel = kustomizev1.GroupVersion.Group + "/namespace"
)

// reading collects what the objects of one inventory say.
type reading struct {
	*Checker

	owner types.NamespacedName
	seen  []observation
	kinds []schema.GroupVersionResource
	err   error
}

// read looks at every object of a group. One that does not exist is skipped,
// as is a kind that is no longer served: its objects went with it.
func (r *reading) read(ctx context.Context, g group) {
	mapping, err := r.mapping(ctx, g.kind)
	if meta.IsNoMatchError(err) {
		return
	}
	if err != nil {
		r.missed(g, g.names, schema.GroupResource{Group: g.kind.Group, Resource: g.kind.Kind}, err)
		return
	}
	g.kind = mapping.GroupVersionKind
	found, err := r.objects(ctx, g)
	if err != nil {
		unread := slices.DeleteFunc(slices.Clone(g.names), func(name string) bool { return found[name].name != "" })
		r.missed(g, unread, mapping.Resource.GroupResource(), err)
	}
	for _, name := range g.names {
		if found[name].name != "" {
			r.seen = append(r.seen, found[name])
		}
	}
	if isWorthWatching(len(found), err) && !slices.Contains(r.kinds, mapping.Resource) {
		r.kinds = append(r.kinds, mapping.Resource)
	}
}

// isWorthWatching leaves out a kind that may not be read, which may not be
// watched either, and one of which nothing exists: what Flux creates, Flux
// tells of. A read that failed for once ends no watch.
func isWorthWatching(found int, err error) bool {
	return found > 0 || (err != nil && !apierrors.IsForbidden(err))
}

// mapping prefers the version of the inventory, which may have been retired
// since the object was applied.
func (r *reading) mapping(ctx context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	if ctx.Err() != nil { // a mapper does not ask
		return nil, ctx.Err()
	}
	if err := r.served.ask(kind.GroupKind(), r.Now()); err != nil {
		return nil, err
	}
	mapping, err := r.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		mapping, err = r.Mapper.RESTMapping(kind.GroupKind())
	}
	r.served.answered(kind.GroupKind(), err, r.Now())
	return mapping, err
}

// objects finds a group's objects by name. It returns what it has at the first
// error, since the next read of the kind would fail the same way.
//
// Only those count that Flux has labelled as applied by this Kustomization. Who may write
// its status, as Flux's own role for editors lets them, writes its inventory: without the
// labels it would tell what others have, and how that is.
func (r *reading) objects(ctx context.Context, g group) (map[string]observation, error) {
	found := map[string]observation{}
	if len(g.names) >= listFrom {
		if err := r.list(ctx, g, found); !apierrors.IsForbidden(err) {
			return found, err
		}
	}
	for _, name := range g.names {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(g.kind)
		err := r.Reader.Get(ctx, types.NamespacedName{Namespace: g.namespace, Name: name}, object)
		if client.IgnoreNotFound(err) != nil {
			return found, err
		}
		if err == nil && r.owns(object) {
			found[name] = observe(object)
		}
	}
	return found, nil
}

func (r *reading) owns(object *unstructured.Unstructured) bool {
	labels := object.GetLabels()
	return labels[OwnerNameLabel] == r.owner.Name && labels[OwnerNamespaceLabel] == r.owner.Namespace
}

// list finds the objects by the labels that Flux gave them, page by page: of each page
// nothing is kept but those that are asked for.
func (r *reading) list(ctx context.Context, g group, found map[string]observation) error {
	for next := ""; ; {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(g.kind.GroupVersion().WithKind(g.kind.Kind + "List"))
		err := r.Reader.List(ctx, list, client.InNamespace(g.namespace), client.Limit(perPage), client.Continue(next), client.MatchingLabels{
			OwnerNameLabel: r.owner.Name, OwnerNamespaceLabel: r.owner.Namespace,
		})
		if err != nil {
			return err
		}
		for i := range list.Items {
			name := list.Items[i].GetName()
			if _, asked := slices.BinarySearch(g.names, name); asked {
				found[name] = observe(&list.Items[i])
			}
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// missed notes objects that could not be read.
func (r *reading) missed(g group, names []string, resource schema.GroupResource, err error) {
	for _, name := range names {
		r.seen = append(r.seen, unseen(objectName(g.kind.Kind, g.namespace, name), readFailure(resource, err)))
	}
	r.err = errors.Join(r.err, fmt.Errorf("read %s in namespace %q: %w", resource, g.namespace, err))
}

// readFailure leaves out what differs from one attempt to the next, such as
// the port of a broken connection: the whole error is for the log.
func readFailure(resource schema.GroupResource, err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("this controller may not read it; let its role get, list and watch %s", resource)
	case errors.Is(err, errManyKinds):
		return "too many kinds were asked for that the API server does not serve; trying again"
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return "the API server did not answer in time"
	}
	return "the API server could not be asked; trying again"
}
