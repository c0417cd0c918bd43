// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cache"
	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
)

// indexes answers the queries to a cache, field indexes included, from the API server,
// like a cache that is never behind.
type indexes map[string]client.IndexerFunc

// trim reduces an object to what the controller's cache keeps of it.
func trim(o any) (any, error) { return cache.Options(nil).DefaultTransform(o) }

func indexName(object runtime.Object, field string) string {
	return fmt.Sprintf("%T %s", object, field)
}

// IndexField implements client.FieldIndexer.
func (x indexes) IndexField(_ context.Context, object client.Object, field string, values client.IndexerFunc) error {
	x[indexName(object, field)] = values
	return nil
}

// cached returns a client that reads like a cache and writes to the API server.
func (x indexes) cached(live client.WithWatch) client.WithWatch {
	return interceptor.NewClient(live, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			_, _ = trim(o)
			return err
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			options := (&client.ListOptions{}).ApplyOptions(opts)
			wanted := options.FieldSelector
			options.FieldSelector = nil
			if err := c.List(ctx, list, options); err != nil {
				return err
			}
			if wanted != nil && fieldindex.IsEverywhere(wanted.Requirements()[0].Field) != (options.Namespace == "") {
				panic("an index is not asked where it knows: " + wanted.String())
			}
			return x.keep(list, wanted)
		},
	})
}

// keep leaves in the list only what the selector selects.
func (x indexes) keep(list client.ObjectList, wanted fields.Selector) error {
	items, err := apimeta.ExtractList(list)
	if err != nil {
		return err
	}
	var kept []runtime.Object
	for _, item := range items {
		_, _ = trim(item)
		if x.matches(item.(client.Object), wanted) {
			kept = append(kept, item)
		}
	}
	return apimeta.SetList(list, kept)
}

func (x indexes) matches(object client.Object, wanted fields.Selector) bool {
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

// readRolloutFrom makes the cache lag behind: it still shows an old Rollout.
func (s *stage) readRolloutFrom(old *v1alpha1.Rollout) {
	s.reads = func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if rollout, ok := o.(*v1alpha1.Rollout); ok {
					old.DeepCopyInto(rollout)
					return nil
				}
				return c.Get(ctx, key, o, opts...)
			},
		})
	}
	s.restart()
}

// oldTarget is a cache that lags behind for one OCIRepository.
type oldTarget struct {
	client.Client
	stale *sourcev1.OCIRepository
}

func (c oldTarget) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := c.Client.List(ctx, list, opts...)
	if repositories, ok := list.(*sourcev1.OCIRepositoryList); ok {
		repositories.Items = []sourcev1.OCIRepository{*c.stale}
	}
	return err
}

func (c oldTarget) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if repository, ok := o.(*sourcev1.OCIRepository); ok {
		c.stale.DeepCopyInto(repository)
		return nil
	}
	return c.Client.Get(ctx, key, o, opts...)
}

// oldChecks is a cache that lags behind for all HealthChecks.
type oldChecks struct {
	client.WithWatch
	stale []v1alpha1.HealthCheck
}

func (c oldChecks) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := c.WithWatch.List(ctx, list, opts...)
	if checks, ok := list.(*v1alpha1.HealthCheckList); ok {
		checks.Items = c.stale
	}
	return err
}

// askedLive records what is read past the cache.
type askedLive struct {
	client.Reader
	asked []string
}

func (r *askedLive) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	r.asked = append(r.asked, fmt.Sprintf("%T %s", o, key.Name))
	return r.Reader.Get(ctx, key, o, opts...)
}
