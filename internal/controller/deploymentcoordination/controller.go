// SPDX-License-Identifier: Apache-2.0

// Package deploymentcoordination is the reconciler of DeploymentCoordinations. The
// package internal/coordination/deployments decides which Deployment may roll out. This
// package reads the input of the decision, records it, carries it out and emits events.
package deploymentcoordination

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/cache/expectations"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
)

// +kubebuilder:rbac:groups=apps.containerinfra.nl,resources=deploymentcoordinations,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.containerinfra.nl,resources=deploymentcoordinations/status,verbs=get;patch;update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Admission keeps waiting Deployments from rolling out at the moment they are created or
// changed.
type Admission interface {
	// Mode returns the reason and the message of the condition HoldMode in a namespace.
	Mode(namespace string) (reason, message string)
	// Other describes another installed coordinator of this API in a sentence; empty if
	// there is none.
	Other() string
	// Changes triggers the reconciler when one of the two answers changes: it puts the
	// namespaces that have coordinations into the queue.
	Changes() source.Source
}

// Reconciler rolls out the Deployments of each coordination one at a time.
//
// A request is a namespace, in its Name: coordinations that share Deployments
// are planned together.
type Reconciler struct {
	// Client reads from caches, which [CacheByObject] fills, and writes.
	Client client.Client
	// APIReader bypasses the caches. It is read before anything but a status is written.
	APIReader client.Reader
	// Events emits events about transitions.
	Events record.EventRecorder
	// Now is the clock.
	Now func() time.Time
	// Self is the controller's own Deployment, which is never a member; zero if it is
	// not known.
	Self types.NamespacedName
	// Admission pauses Deployments in addition to the reconciler; nil if no admission
	// is installed.
	Admission Admission
	// Durations records how long reconciliations take; nil records nothing.
	Durations *metrics.Durations

	writes expectations.Versions
	// retries is for Deployments, and journals for the statuses of coordinations.
	retries, journals retries
	outages           outages
	holds             holds
}

// Reconcile advances the coordinations of one namespace by one plan: it reads, decides,
// records and acts, in this order. The turn is recorded before a Deployment is unpaused,
// so the next pass or the next controller can finish it.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	pass := &announce.Pass{}
	result, err := r.pass(ctx, req, pass)
	return pass.End(ctx, result, err)
}

func (r *Reconciler) pass(ctx context.Context, req ctrl.Request, pass *announce.Pass) (ctrl.Result, error) {
	begun := r.Now()
	seen := r.gather(ctx, origin{Reader: r.Client}, req.Name)
	defer func() {
		r.Durations.Together(coordinationv1.DeploymentCoordinationKind, req.Name, slices.Sorted(maps.Keys(seen.coordinations)), begun)
	}()
	if r.behind(seen) {
		pass.Ends("the cache does not show a write of this controller yet, whose event is on its way")
		return ctrl.Result{}, nil
	}
	plan := r.decide(seen)
	if plan.Begins || r.writesNow(seen, plan) {
		seen = r.confirm(ctx, seen)
		plan = r.decide(seen)
	}
	if !r.outages.worthEmitting(seen.namespace, seen.Unreadable, r.Now()) {
		return ctrl.Result{}, seen.Unreadable
	}
	pass.Decided(plan)
	stored, unstored, errs := r.record(ctx, seen, plan)
	pass.Stored(stored)
	errs = append(errs, r.act(ctx, seen, plan, unstored)...)
	all := len(errs)
	errs = slices.DeleteFunc(errs, isOutrun)
	if err := errors.Join(append(errs, seen.Unreadable)...); err != nil {
		return ctrl.Result{}, err
	}
	if len(errs) < all {
		pass.Ends("an object has changed since it was read")
		return ctrl.Result{RequeueAfter: recheck.AfterConflict}, nil
	}
	return r.requeue(begun, plan.RecheckAt, r.retries.next(seen.namespace), r.journals.next(seen.namespace)), nil
}

// isOutrun reports whether another writer was faster. Then the pass has to read again.
func isOutrun(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

// decide makes the plan. The error of a failed write is dropped when the plan does not
// contain the write any more.
func (r *Reconciler) decide(seen snapshot) deployments.Plan {
	plan := deployments.Decide(seen.Input)
	r.journals.settle(seen.namespace, func(key string) bool {
		return seen.coordinations[strings.TrimPrefix(key, seen.namespace+"/")] != nil
	})
	isWanted := func(key string) bool {
		return slices.ContainsFunc(plan.Writes, func(w deployments.Write) bool { return w.Deployment == key })
	}
	if !r.retries.settle(seen.namespace, isWanted) {
		return plan
	}
	for i := range seen.Deployments {
		seen.Deployments[i].WriteError = r.retries.failure(seen.Deployments[i].Key)
	}
	return deployments.Decide(seen.Input)
}

// writesNow reports whether one of the writes of a plan is made in this pass. The others
// wait, because they have failed a moment ago.
func (r *Reconciler) writesNow(seen snapshot, plan deployments.Plan) bool {
	return slices.ContainsFunc(plan.Writes, func(w deployments.Write) bool { return !r.retries.waits(w.Deployment, seen.Now) })
}

// behind reports whether an object in the cache is older than a write of this controller.
func (r *Reconciler) behind(seen snapshot) bool {
	for _, c := range seen.coordinations {
		if r.writes.Stale(c) {
			return true
		}
	}
	for _, d := range seen.deployments {
		if r.writes.Stale(d) {
			return true
		}
	}
	return false
}

// requeue returns the delay until the first of the moments; zero means never.
func (r *Reconciler) requeue(begun time.Time, moments ...time.Time) ctrl.Result {
	var wait time.Duration
	for _, at := range moments {
		if at.IsZero() {
			continue
		}
		if until := recheck.In(at, begun, r.Now()); wait == 0 || until < wait {
			wait = until
		}
	}
	return ctrl.Result{RequeueAfter: wait}
}
