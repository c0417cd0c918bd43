// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
)

// Indexes answers the queries to a cache, field indexes included, from the API server,
// like a cache that is never behind. It is a client.FieldIndexer.
type Indexes map[string]client.IndexerFunc

func indexName(object runtime.Object, field string) string {
	return fmt.Sprintf("%T %s", object, field)
}

// IndexField implements client.FieldIndexer.
func (x Indexes) IndexField(_ context.Context, object client.Object, field string, values client.IndexerFunc) error {
	x[indexName(object, field)] = values
	return nil
}

// Cached returns a client that reads like a cache and writes to the API server.
func (x Indexes) Cached(live client.WithWatch) client.WithWatch {
	known := memoryOf(live)
	return interceptor.NewClient(live, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return known.get(ctx, c, cached, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			options := (&client.ListOptions{}).ApplyOptions(opts)
			wanted := options.FieldSelector
			options.FieldSelector = nil
			found := known.list(ctx, c, cached, list, options)
			if found.err != nil {
				return found.err
			}
			if wanted != nil && fieldindex.IsEverywhere(wanted.Requirements()[0].Field) != (options.Namespace == "") {
				panic("an index is not asked where it knows: " + wanted.String())
			}
			return x.fill(list, found, wanted)
		},
	})
}

// fill puts copies of the objects that a selector selects into a list.
func (x Indexes) fill(list client.ObjectList, found answer, wanted fields.Selector) error {
	list.SetResourceVersion(found.version)
	var selected []runtime.Object
	for _, o := range found.objects {
		if x.matches(o, wanted) {
			selected = append(selected, o.DeepCopyObject())
		}
	}
	return apimeta.SetList(list, selected)
}

func (x Indexes) matches(object client.Object, wanted fields.Selector) bool {
	if wanted == nil {
		return true
	}
	for _, requirement := range wanted.Requirements() {
		values, ok := x[indexName(object, requirement.Field)]
		if !ok {
			panic("no index " + indexName(object, requirement.Field))
		}
		found := false
		for _, value := range values(object) {
			found = found || value == requirement.Value
		}
		if !found {
			return false
		}
	}
	return true
}
