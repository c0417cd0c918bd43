// SPDX-License-Identifier: Apache-2.0

// Package fieldindex adds indexes to caches that take half the memory.
package fieldindex

import (
	"context"
	"fmt"
	"strings"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Everywhere begins the names of fields whose values are looked for in all
// namespaces at a time. Those of all others are looked for in one.
const Everywhere = "everywhere:"

// IsEverywhere reports whether the values of a field are looked for in all
// namespaces.
func IsEverywhere(field string) bool { return strings.HasPrefix(field, Everywhere) }

// Indexer adds field indexes to a cache. The cache's own would store each value
// twice, once for who asks in a namespace and once for who asks in all, and for
// ten thousand objects each is some megabytes. A list by a field whose name
// begins with [Everywhere] finds nothing if it names a namespace, and one by another
// field nothing unless it does. It implements [client.FieldIndexer].
type Indexer struct {
	// Cache is that which lists are read from.
	Cache cache.Informers
}

// IndexField adds an index under the name and with the keys by which the lists of
// controller-runtime look for it.
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
