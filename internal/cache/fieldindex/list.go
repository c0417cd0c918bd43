// SPDX-License-Identifier: Apache-2.0

package fieldindex

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	errNoNamespace = errors.New("this index is for lists in one namespace, and the list names none")
	errNamespace   = errors.New("this index is for lists in all namespaces, and the list names one")
	errGone        = errors.New("the informer was removed")
)

// List uses the index of the field in [client.MatchingFields]. It returns an error if the
// index is for lists in one namespace and the list names none, or the other way round.
// All other lists are left to the cache.
func (c *Cache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	x, value := c.indexFor(list, asked.FieldSelector)
	if x == nil {
		return c.Cache.List(ctx, list, options...)
	}
	found, err := c.find(ctx, x, asked, value)
	if err != nil {
		return fmt.Errorf("list %s by %s: %w", x.kind.Kind, x.field, err)
	}
	fill(list, found)
	return nil
}

func (c *Cache) indexFor(list client.ObjectList, selector fields.Selector) (x *index, value string) {
	if selector == nil {
		return nil, ""
	}
	wanted := selector.Requirements()
	if len(wanted) != 1 {
		return nil, ""
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.indexes[place{reflect.TypeOf(list), wanted[0].Field}], wanted[0].Value
}

// find returns the objects of a bucket that a list asks for.
func (c *Cache) find(ctx context.Context, x *index, asked *client.ListOptions, value string) ([]client.Object, error) {
	if err := x.check(asked.Namespace); err != nil {
		return nil, err
	}
	stores, err := c.stores(ctx, x)
	if err != nil {
		return nil, err
	}
	var found []client.Object
	for _, store := range stores {
		bucket, err := store.ByIndex(x.name(), c.bucket(x, asked.Namespace, value))
		if err != nil {
			return nil, err
		}
		for _, o := range bucket {
			if object := o.(client.Object); matches(object, asked) && slices.Contains(x.values(object), value) {
				found = append(found, copied(object, x, asked))
			}
		}
	}
	if asked.Limit > 0 && int64(len(found)) > asked.Limit {
		found = found[:asked.Limit]
	}
	return found, nil
}

// check returns an error if the index is of no use for lists in a namespace.
func (x *index) check(namespace string) error {
	switch {
	case IsEverywhere(x.field) && namespace != "":
		return errNamespace
	case !IsEverywhere(x.field) && namespace == "":
		return errNoNamespace
	}
	return nil
}

// stores returns the objects of the kind when the cache has read all of them. When the
// process stops, the caches may end before the last pass, which still finds the objects:
// it must not take them for deleted.
func (c *Cache) stores(ctx context.Context, x *index) ([]toolscache.Indexer, error) {
	informer, err := c.GetInformer(ctx, x.object)
	if err != nil {
		return nil, err
	}
	if !informer.HasSynced() {
		return nil, &cache.ErrCacheNotStarted{}
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	kept := c.informers[reflect.TypeOf(x.object)]
	if len(kept) == 0 {
		return nil, errGone
	}
	stores := make([]toolscache.Indexer, len(kept))
	for i, one := range kept {
		stores[i] = one.GetIndexer()
	}
	return stores, nil
}

func matches(object client.Object, asked *client.ListOptions) bool {
	return (asked.Namespace == "" || asked.Namespace == object.GetNamespace()) &&
		(asked.LabelSelector == nil || asked.LabelSelector.Matches(labels.Set(object.GetLabels())))
}

// copied returns a copy of the object, with its kind, or the object itself if the list is
// content with that.
func copied(object client.Object, x *index, asked *client.ListOptions) client.Object {
	if asked.UnsafeDisableDeepCopy != nil && *asked.UnsafeDisableDeepCopy {
		return object
	}
	object = object.DeepCopyObject().(client.Object)
	object.GetObjectKind().SetGroupVersionKind(x.kind)
	return object
}

// fill sets the items of a list.
func fill(list client.ObjectList, found []client.Object) {
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	items.Set(reflect.MakeSlice(items.Type(), len(found), len(found)))
	for i, object := range found {
		items.Index(i).Set(reflect.ValueOf(object).Elem())
	}
}
