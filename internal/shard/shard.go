// SPDX-License-Identifier: Apache-2.0

// Package shard divides the work between several instances of the controller by labels.
package shard

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

// Shard is the part of the work that one of several instances does: it reconciles the
// Rollouts, HealthChecks and schedules whose own labels match its selector. The objects
// that these refer to may belong to any instance. The zero value reconciles all of them.
type Shard struct {
	// Selector selects by labels. Nil matches all objects.
	Selector labels.Selector
	// AllRollouts contains the Rollouts of all instances, with their names, labels and
	// selectors of HealthChecks. It is nil if the client of the reconciler has all of them.
	AllRollouts cache.Cache
}

// New returns the part of the work that a label selector selects. The selector must be
// the one of the manager's cache (cache.Options). namespaces are those that the cache
// watches; none means all. newCache creates one more cache.
func New(mgr ctrl.Manager, newCache cache.NewCacheFunc, selector labels.Selector, namespaces map[string]cache.Config) (Shard, error) {
	if selector == nil || selector.Empty() {
		return Shard{}, nil
	}
	all, err := newCache(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces: namespaces, DefaultTransform: trim,
	})
	if err != nil {
		return Shard{}, fmt.Errorf("prepare a cache of all Rollouts: %w", err)
	}
	if err := mgr.Add(clusterCache{all}); err != nil {
		return Shard{}, fmt.Errorf("add a cache of all Rollouts: %w", err)
	}
	return Shard{Selector: selector, AllRollouts: all}, nil
}

// Handles reports whether this instance reconciles the object.
func (s Shard) Handles(o client.Object) bool { return s.matches(o.GetLabels()) }

// Labels returns the keys of the labels by which instances are told apart.
func (s Shard) Labels() []string {
	if s.Selector == nil {
		return nil
	}
	var keys []string
	requirements, _ := s.Selector.Requirements()
	for i := range requirements {
		keys = append(keys, requirements[i].Key())
	}
	return keys
}

// Predicate passes the events of objects that this instance reconciles, or reconciled
// until this event. In the second case, it must forget them.
func (s Shard) Predicate() predicate.Predicate {
	own := predicate.NewPredicateFuncs(s.Handles)
	return predicate.Funcs{
		CreateFunc: own.Create, DeleteFunc: own.Delete, GenericFunc: own.Generic,
		UpdateFunc: func(e event.UpdateEvent) bool { return s.Handles(e.ObjectOld) || s.Handles(e.ObjectNew) },
	}
}

// OnlyDeleted passes only delete events: of the Rollouts of all instances, nothing else
// concerns this one.
func OnlyDeleted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// TakesUnlabelled reports whether this instance reconciles objects without labels. That
// instance also reports references to objects that do not exist.
func (s Shard) TakesUnlabelled() bool { return s.matches(nil) }

func (s Shard) matches(set map[string]string) bool {
	return s.Selector == nil || s.Selector.Matches(labels.Set(set))
}

// Exists reports whether a Rollout that this instance does not reconcile belongs to
// another one.
func (s Shard) Exists(ctx context.Context, rollout types.NamespacedName) (bool, error) {
	if s.AllRollouts == nil {
		return false, nil
	}
	err := s.AllRollouts.Get(ctx, rollout, &v1alpha1.Rollout{})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("look for Rollout %s among those of all instances: %w", rollout, err)
	}
	return err == nil, nil
}

// Rollouts returns a reader of the Rollouts of all instances. own is the client of the
// reconciler.
func (s Shard) Rollouts(own client.Reader) client.Reader {
	if s.AllRollouts != nil {
		return s.AllRollouts
	}
	return own
}

// clusterCache is a cache that the manager starts together with its own.
type clusterCache struct{ cache.Cache }

// GetCache is the method with which the manager recognizes a cache.
func (c clusterCache) GetCache() cache.Cache { return c.Cache }

// trim removes everything from a Rollout except what AllRollouts contains.
func trim(o any) (any, error) {
	rollout, ok := o.(*v1alpha1.Rollout)
	if !ok {
		return o, nil
	}
	return &v1alpha1.Rollout{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: rollout.Namespace, Name: rollout.Name, UID: rollout.UID,
			ResourceVersion: rollout.ResourceVersion, Labels: rollout.Labels,
		},
		Spec: v1alpha1.RolloutSpec{HealthCheckSelector: rollout.Spec.HealthCheckSelector},
	}, nil
}
