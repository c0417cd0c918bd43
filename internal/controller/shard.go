// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Shard is the part of the work that one of several instances does: it acts for
// the Rollouts, HealthChecks and schedules whose own labels its selector
// matches. What one of these looks at may belong to any instance. The zero
// value acts for all of them.
type Shard struct {
	// Selector of labels; nil matches all.
	Selector labels.Selector
	// Everyone shows the Rollouts of all instances, by name and labels; nil if
	// the client of the reconciler does.
	Everyone cache.Cache
}

// NewShard returns the part of the work that a selector of labels selects. The
// selector must be the one that the manager's cache has (cache.Options);
// namespaces are those that the cache watches, none for all; newCache creates one more.
func NewShard(mgr ctrl.Manager, newCache cache.NewCacheFunc, selector labels.Selector, namespaces map[string]cache.Config) (Shard, error) {
	if selector == nil || selector.Empty() {
		return Shard{}, nil
	}
	all, err := newCache(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces: namespaces, DefaultTransform: justLabels,
	})
	if err != nil {
		return Shard{}, fmt.Errorf("prepare a cache of all Rollouts: %w", err)
	}
	if err := mgr.Add(everyone{all}); err != nil {
		return Shard{}, fmt.Errorf("add a cache of all Rollouts: %w", err)
	}
	return Shard{Selector: selector, Everyone: all}, nil
}

// handles reports whether this instance acts for the object.
func (s Shard) handles(o client.Object) bool { return s.matches(o.GetLabels()) }

// concerned lets the events of objects through that this instance acts for, or
// did until now: then it forgets what it knows of them.
func (s Shard) concerned() predicate.Predicate {
	own := predicate.NewPredicateFuncs(s.handles)
	return predicate.Funcs{
		CreateFunc: own.Create, DeleteFunc: own.Delete, GenericFunc: own.Generic,
		UpdateFunc: func(e event.UpdateEvent) bool { return s.handles(e.ObjectOld) || s.handles(e.ObjectNew) },
	}
}

// takesUnlabelled reports whether this instance acts for what has no labels,
// and so for what nobody has made yet.
func (s Shard) takesUnlabelled() bool { return s.matches(nil) }

func (s Shard) matches(set map[string]string) bool {
	return s.Selector == nil || s.Selector.Matches(labels.Set(set))
}

// exists reports whether a Rollout that this instance cannot see belongs to
// another.
func (s Shard) exists(ctx context.Context, rollout types.NamespacedName) (bool, error) {
	if s.Everyone == nil {
		return false, nil
	}
	err := s.Everyone.Get(ctx, rollout, &v1alpha1.Rollout{})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("look for Rollout %s among those of all instances: %w", rollout, err)
	}
	return err == nil, nil
}

// rollouts reads the Rollouts of all instances.
func (s Shard) rollouts(own client.Reader) client.Reader {
	if s.Everyone != nil {
		return s.Everyone
	}
	return own
}

// everyone is a cache that the manager starts together with its own.
type everyone struct{ cache.Cache }

// GetCache lets the manager know it for a cache.
func (e everyone) GetCache() cache.Cache { return e.Cache }

// justLabels keeps of a Rollout what tells whose it is.
func justLabels(o any) (any, error) {
	rollout, ok := o.(*v1alpha1.Rollout)
	if !ok {
		return o, nil
	}
	return &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{
		Namespace: rollout.Namespace, Name: rollout.Name, UID: rollout.UID,
		ResourceVersion: rollout.ResourceVersion, Labels: rollout.Labels,
	}}, nil
}
