// SPDX-License-Identifier: Apache-2.0

// Package fieldindex adds field indexes to a cache, for a fraction of the memory that the
// cache's own indexes need.
package fieldindex

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"reflect"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Everywhere is the prefix of fields whose values are looked up in all namespaces. The
// values of all other fields are looked up in one namespace.
const Everywhere = "everywhere:"

// IsEverywhere reports whether the values of a field are looked up in all namespaces.
func IsEverywhere(field string) bool { return strings.HasPrefix(field, Everywhere) }

// buckets is how many sets of objects an index has at most. An index of an informer keeps
// one set for each value. Nearly all of our values belong to one object, and for ten
// thousand objects each index would take megabytes. Therefore values share the sets, and
// a list removes what it did not look for: among ten thousand, that is two or three
// objects.
const buckets = 4096

// Cache is a cache whose lists use the field indexes that [Cache.IndexField] has added.
type Cache struct {
	cache.Cache

	scheme  *runtime.Scheme
	seed    maphash.Seed
	mu      sync.RWMutex
	indexes map[place]*index
	// informers contains the informers that the cache consists of, by the type of their
	// objects. A cache that is restricted to namespaces has one for each.
	informers map[reflect.Type][]toolscache.SharedIndexInformer
}

// place is what a list names to use an index.
type place struct {
	list  reflect.Type
	field string
}

// index finds objects of one kind by the values of a field.
type index struct {
	object client.Object // an example
	kind   schema.GroupVersionKind
	field  string
	values client.IndexerFunc
}

// NewCache makes every cache that a function creates a [Cache].
func NewCache(create cache.NewCacheFunc) cache.NewCacheFunc {
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		c := &Cache{
			scheme: options.Scheme, seed: maphash.MakeSeed(),
			indexes: map[place]*index{}, informers: map[reflect.Type][]toolscache.SharedIndexInformer{},
		}
		options.NewInformer = c.keeping(options.NewInformer)
		var err error
		c.Cache, err = create(config, options)
		return c, err
	}
}

// informerFunc creates an informer.
type informerFunc = func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// keeping returns a function that creates informers as another one does, and keeps them.
// The cache itself shows its informers only without their indexes.
func (c *Cache) keeping(create informerFunc) informerFunc {
	if create == nil {
		create = toolscache.NewSharedIndexInformer
	}
	return func(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		created, kind := create(from, example, resync, indexers), reflect.TypeOf(example)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.informers[kind] = append(c.informers[kind], created)
		return created
	}
}

// RemoveInformer removes the informer of a kind, and its indexes.
func (c *Cache) RemoveInformer(ctx context.Context, object client.Object) error {
	c.mu.Lock()
	kind := reflect.TypeOf(object)
	delete(c.informers, kind)
	maps.DeleteFunc(c.indexes, func(_ place, x *index) bool { return reflect.TypeOf(x.object) == kind })
	c.mu.Unlock()
	return c.Cache.RemoveInformer(ctx, object)
}

// IndexField adds an index. Lists with the field in [client.MatchingFields] use it.
func (c *Cache) IndexField(ctx context.Context, object client.Object, field string, values client.IndexerFunc) error {
	kind, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return fmt.Errorf("index %T by %s: %w", object, field, err)
	}
	list, err := c.scheme.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err != nil {
		return fmt.Errorf("index %T by %s: %w", object, field, err)
	}
	informer, err := c.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %T: %w", object, err)
	}
	x := &index{object: object, kind: kind, field: field, values: values}
	if err := informer.AddIndexers(toolscache.Indexers{x.name(): c.keys(x)}); err != nil {
		return fmt.Errorf("index %T by %s: %w", object, field, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.indexes[place{reflect.TypeOf(list), field}] = x
	return nil
}

func (x *index) name() string { return "bucket:" + x.field }

// keys returns the function that computes the buckets of an object.
func (c *Cache) keys(x *index) toolscache.IndexFunc {
	return func(o any) ([]string, error) {
		object, ok := o.(client.Object)
		if !ok {
			return nil, fmt.Errorf("a %T cannot be indexed", o)
		}
		values := x.values(object)
		keys := make([]string, len(values))
		for i, value := range values {
			keys[i] = c.bucket(x, object.GetNamespace(), value)
		}
		return keys, nil
	}
}

// names are the keys of all buckets.
var names = func() (all [buckets]string) {
	for i := range all {
		all[i] = fmt.Sprintf("%03x", i)
	}
	return all
}()

// bucket returns the key of the set with the objects that have a value.
func (c *Cache) bucket(x *index, namespace, value string) string {
	var h maphash.Hash
	h.SetSeed(c.seed)
	if !IsEverywhere(x.field) {
		_, _ = h.WriteString(namespace)
		_ = h.WriteByte('/')
	}
	_, _ = h.WriteString(value)
	return names[h.Sum64()%buckets]
}
