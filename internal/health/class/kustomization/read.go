// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/live"
)

// listFrom is the number of objects of a kind and namespace from which one list is
// cheaper than a get for each.
const listFrom = 4

// perPage is how many objects of an inventory one list asks for.
const perPage = 500

// errUndecodable means that the schema allows a value of the object that Go cannot
// decode.
var errUndecodable = errors.New("it cannot be decoded: correct the field that the log of the controller names")

// reading collects the states of the objects of one inventory.
type reading struct {
	*Checker

	owner Subject
	seen  []observation
	watch []schema.GroupVersionResource
	err   error
}

// read looks at every object of a group. It skips objects that do not exist, and kinds
// that are no longer served: their objects do not exist any more either.
func (r *reading) read(ctx context.Context, g group) {
	mapping, err := r.kinds.Mapping(ctx, r.Mapper, g.kind, r.Now())
	if meta.IsNoMatchError(err) {
		return
	}
	if err != nil {
		r.missed(g, g.names, schema.GroupResource{Group: g.kind.Group, Resource: g.kind.Kind}, err)
		return
	}
	g.kind = mapping.GroupVersionKind
	found, err := r.objects(ctx, g, mapping)
	if err != nil {
		unread := slices.DeleteFunc(slices.Clone(g.names), func(name string) bool { return found[name].name != "" })
		r.missed(g, unread, mapping.Resource.GroupResource(), err)
	}
	for _, name := range g.names {
		if found[name].name != "" {
			r.seen = append(r.seen, found[name])
		}
	}
	if isWorthWatching(len(found), err) && !slices.Contains(r.watch, mapping.Resource) {
		r.watch = append(r.watch, mapping.Resource)
	}
}

// isWorthWatching reports whether to watch a kind. A kind that may not be read may not be
// watched either. A kind of which nothing exists needs no watch: when Flux creates an
// object, the status of the subject changes. A single failed read ends no watch.
func isWorthWatching(found int, err error) bool {
	return found > 0 || (err != nil && !apierrors.IsForbidden(err))
}

// objects finds a group's objects by name. At the first error it returns what it has,
// because the next read of the kind would fail the same way.
//
// It returns only objects that Flux has labelled as applied by the subject. Flux's own role
// for editors lets users write the status of a Kustomization or a HelmRelease, and so its
// inventory. Without the labels it would reveal the objects of others, and their state.
func (r *reading) objects(ctx context.Context, g group, kind *meta.RESTMapping) (map[string]observation, error) {
	found := map[string]observation{}
	if len(g.names) >= listFrom {
		if err := r.list(ctx, g, kind, found); !apierrors.IsForbidden(err) {
			return found, err
		}
	}
	for _, name := range g.names {
		err := r.Objects.Get(ctx, kind, types.NamespacedName{Namespace: g.namespace, Name: name}, func(object json.RawMessage) error {
			return r.look(object, g, found)
		})
		if client.IgnoreNotFound(err) != nil {
			return found, err
		}
	}
	return found, nil
}

// list finds the objects by the labels that Flux gave them.
func (r *reading) list(ctx context.Context, g group, kind *meta.RESTMapping, found map[string]observation) error {
	return r.Objects.Select(ctx, kind, g.namespace, r.owner.Labels().AsSelector(), perPage, func(object json.RawMessage) error {
		return r.look(object, g, found)
	})
}

// look stores the state of an object that is asked for and was applied by the
// subject, and nothing else of the object.
func (r *reading) look(raw json.RawMessage, g group, found map[string]observation) error {
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(raw, &object.Object); err != nil {
		return fmt.Errorf("%w: %w", errUndecodable, err)
	}
	object.SetGroupVersionKind(g.kind) // objects in a list do not contain their kind
	if _, asked := slices.BinarySearch(g.names, object.GetName()); asked && r.owns(object) {
		found[object.GetName()] = observe(object)
	}
	return nil
}

func (r *reading) owns(object *unstructured.Unstructured) bool {
	return r.owner.Labels().AsSelector().Matches(labels.Set(object.GetLabels()))
}

// missed records objects that could not be read.
func (r *reading) missed(g group, names []string, resource schema.GroupResource, err error) {
	for _, name := range names {
		r.seen = append(r.seen, unseen(objectName(g.kind.Kind, g.namespace, name), readFailure(resource, err)))
	}
	if r.err == nil { // most others fail the same way, and there may be thousands
		r.err = fmt.Errorf("read %s in namespace %q: %w", resource, g.namespace, err)
	}
}

// readFailure leaves out details that differ from one attempt to the next, such as the
// port of a broken connection. The log contains the whole error.
func readFailure(resource schema.GroupResource, err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("this controller may not read it; let its role get, list and watch %s", resource)
	case errors.Is(err, errUndecodable):
		return errUndecodable.Error()
	case errors.Is(err, live.ErrManyKinds):
		return "too many kinds were asked for that the API server does not serve; trying again"
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return "the API server did not answer in time"
	}
	return "the API server could not be asked; trying again"
}
