// SPDX-License-Identifier: Apache-2.0

// Package statefulsetrollout replaces the pods of StatefulSets that share the
// label rollout-group, in one set at a time.
//
// What is decided, and why, is in internal/coordination/statefulsets; this
// package gathers what it asks for and carries out what it says. There is no
// state in the cluster beside the pods themselves, and what is remembered here
// saves requests and events only.
//
// In the order in which a reader meets them:
//
//	controller.go       one pass over a group
//	manager.go          what wakes a group
//	pods.go             the watch on pods, once it is needed
//	cache.go            what is kept in the cache
//	gather.go           the sets and pods of a group
//	facts.go            what they say, in plain values
//	act.go              deletions and evictions
//	revision_status.go  the one write of a status
//	events.go           what people are told
//	rights.go           whether they may be told
//	memory.go           what is remembered of a group
//	ready.go            the endpoint /ready
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

// These rights are enough. Events are sent, and pods evicted, if that is allowed
// beside them.
//
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=statefulsets/status,verbs=update

// Reconciler replaces the pods of rollout groups. A group is a namespace and a
// value of the label.
type Reconciler struct {
	// Client reads from a cache with the options of CacheByObject, and writes.
	Client client.Client
	// APIReader reads past the cache, before something is deleted.
	APIReader client.Reader
	// Events tells people. Without the right to create events nothing is sent.
	Events record.EventRecorder
	// Now is the clock.
	Now func() time.Time
	// UseEviction evicts pods instead of deleting them, so that disruption budgets
	// are respected. It needs the right to create pods/eviction.
	UseEviction bool
	// Metrics counts what is done; nil does not.
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

// outcome is what came of a pass.
type outcome struct {
	plan statefulsets.Plan
	// refused is true if a pod may not be evicted now.
	refused bool
	// again is when to look again although nothing may happen; zero is never.
	again time.Duration
}

// reconcile plans from the cache. What changes the cluster is planned again from
// what the API server says at that moment, so that neither an old cache nor
// somebody else's deletion leads to one too many.
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
	r.tell(ctx, g, m, plan)
	return r.act(ctx, g, m, plan)
}

// pause is how long nothing has to be done, as far as that is known; zero means
// until something happens.
func (r *Reconciler) pause(begun time.Time, o outcome) time.Duration {
	pause := o.again
	if at := o.plan.RecheckAt; !at.IsZero() {
		if left := recheck.In(at, begun, r.Now()); pause == 0 || left < pause {
			pause = left
		}
	}
	return pause
}

// forget drops what is known of a group that has no sets any more.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.memories.drop(key)
	r.refusals.over(key)
	r.rights.forget(key.Namespace)
	r.Metrics.Forget(key)
}
