// SPDX-License-Identifier: Apache-2.0

// Package statefulsetrollout replaces the pods of StatefulSets that share the label
// rollout-group, in one set at a time.
//
// The package internal/coordination/statefulsets makes the decisions and explains them.
// This package reads the input and carries out the plan. The pods are the only state in
// the cluster. The memory of this package only saves requests and events.
//
// The files in reading order:
//
//	controller.go  one pass over a group
//	watches.go     the events that trigger a pass
//	pods.go        the watch on pods, which begins once it is needed
//	cache.go       the content of the cache
//	gather.go      the sets and pods of a group
//	act.go         deletions and evictions
//	status.go      the only write of a status
//	events.go      the events
//	rights.go      whether events may be created
//	memory.go      the memory of a group
//	ready.go       the endpoint /ready
package statefulsetrollout

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/cache/expectations"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/statefulsets"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
)

// These permissions are sufficient. With further permissions it also creates events and
// evicts pods.
//
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=statefulsets/status,verbs=update

// Reconciler replaces the pods of rollout groups. A group is a namespace and a value of
// the label.
type Reconciler struct {
	// Client reads from a cache with the options of CacheByObject, and writes.
	Client client.Client
	// APIReader bypasses the cache. It is read before something is deleted.
	APIReader client.Reader
	// Events emits events. Without the permission to create events none are sent.
	Events record.EventRecorder
	// Now is the clock.
	Now func() time.Time
	// UseEviction evicts pods instead of deleting them, to respect disruption budgets. It
	// needs the permission to create pods/eviction.
	UseEviction bool
	// Metrics counts the actions; nil counts nothing.
	Metrics *metrics.Groups

	pods     podWatch
	memories memories
	writes   expectations.Versions
	rights   rights
	refusals refusals
}

// Reconcile does one pass over the group of that namespace and name.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	pass := &announce.Pass{}
	result, err := r.pass(ctx, req, pass)
	return pass.End(ctx, result, err)
}

func (r *Reconciler) pass(ctx context.Context, req ctrl.Request, pass *announce.Pass) (ctrl.Result, error) {
	begun, key := r.Now(), req.NamespacedName
	known, err := r.known(ctx, key)
	if err == nil && !known {
		r.forget(key)
		pass.Ends("the group has no StatefulSets")
		return ctrl.Result{}, nil
	}
	var o outcome
	if err == nil {
		o, err = r.reconcile(ctx, key)
		pass.Decided(o.plan)
	}
	r.Metrics.Reconciled(key, begun, r.Now(), err != nil || o.plan.State == statefulsets.Invalid)
	if err == nil {
		r.Metrics.Blocked(key, o.blocked())
	}
	return ctrl.Result{RequeueAfter: r.pause(begun, o)}, err
}

// outcome is the result of a pass.
type outcome struct {
	plan statefulsets.Plan
	// refused is true if a pod may not be evicted now.
	refused bool
	// again is when to look again even if no event comes; zero means never.
	again time.Duration
}

// reconcile plans from the cache. A plan that changes the cluster is made again from the
// present state in the API server. So neither an old cache nor a deletion by another
// client leads to one deletion too many.
func (r *Reconciler) reconcile(ctx context.Context, key types.NamespacedName) (outcome, error) {
	if err := r.pods.begin(ctx); err != nil {
		return outcome{}, err
	}
	m := r.memories.of(key)
	g, err := r.gather(ctx, key, m)
	if err != nil {
		return outcome{}, err
	}
	plan := statefulsets.Decide(g.facts)
	if plan.Acts() {
		if g, err = r.gatherLive(ctx, key, m); err != nil {
			return outcome{}, err
		}
		plan = statefulsets.Decide(g.facts)
	}
	r.emit(ctx, g, m, plan)
	return r.act(ctx, g, m, plan)
}

// pause returns how long there is nothing to do, as far as that is known; zero means
// until the next event.
func (r *Reconciler) pause(begun time.Time, o outcome) time.Duration {
	pause := o.again
	if at := o.plan.RecheckAt; !at.IsZero() {
		if left := recheck.In(at, begun, r.Now()); pause == 0 || left < pause {
			pause = left
		}
	}
	return pause
}

// forget drops the state of a group that has no sets any more.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.memories.drop(key)
	r.refusals.over(key)
	r.rights.forget(key.Namespace)
	r.Metrics.Forget(key)
}
