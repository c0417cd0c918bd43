// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// readRolloutFrom makes the cache lag behind: it still shows an old Rollout.
func (s *testEnv) readRolloutFrom(old *v1alpha1.Rollout) {
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
		checks.Items = slices.Clone(c.stale)
	}
	return err
}

// lacking is a cache that does not show the objects of a kind yet.
type lacking[L client.ObjectList] struct{ client.WithWatch }

func (c lacking[L]) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(L); ok {
		return nil
	}
	return c.WithWatch.List(ctx, list, opts...)
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
