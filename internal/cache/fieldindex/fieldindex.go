// SPDX-License-Identifier: Apache-2.0

// Package fieldindex adds indexes to caches that need half the memory.
package fieldindex

import (
	"context"
	"fmt"
	"strings"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Everywhere is the prefix of fields whose values are looked up in all namespaces. The
// values of all other fields are looked up in one namespace.
const Everywhere = "everywhere:"

// IsEverywhere reports whether the values of a field are looked up in all namespaces.
func IsEverywhere(field string) bool { return strings.HasPrefix(field, Everywhere) }

// Indexer adds field indexes to a cache. The cache's own index would store each value
// twice: once for lookups in a namespace and once for lookups in all namespaces. For ten
// thousand objects each copy needs some megabytes. A list by a field with the prefix
// [Everywhere] finds nothing if it names a namespace. A list by another field finds
// nothing without a namespace. Indexer implements [client.FieldIndexer].
type Indexer struct {
	// Cache is the cache that the lists read from.
	Cache cache.Informers
}

// IndexField adds an index with the name and the keys that the lists of
// controller-runtime look up.
func (x Indexer) IndexField(ctx context.Context, object client.Object, field string, values client.IndexerFunc) error {
	informer, err := x.Cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %T: %w", object, err)
	}
	if err := informer.AddIndexers(toolscache.Indexers{"field:" + field: keys(field, values)}); err != nil {
		return fmt.Errorf("index %T by %s: %w", object, field, err)
	}
	return nil
}

func keys(field string, values client.IndexerFunc) toolscache.IndexFunc {
	return func(o any) ([]string, error) {
		object, ok := o.(client.Object)
		if !ok {
			return nil, fmt.Errorf("a %T cannot be indexed", o)
		}
		namespace := object.GetNamespace()
		if IsEverywhere(field) || namespace == "" {
			namespace = "__all_namespaces"
		}
		all := values(object)
		keys := make([]string, len(all))
		for i, value := range all {
			keys[i] = namespace + "/" + value
		}
		return keys, nil
	}
}
