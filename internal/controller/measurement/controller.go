// SPDX-License-Identifier: Apache-2.0

// Package measurement is the reconciler of HealthChecks that are measured: those of the
// classes prometheus, http, job and object. A pass plans the next measurement, and records the last
// one. It never waits for one.
//
//	controller.go  one pass over a HealthCheck
//	watches.go     the events that trigger a pass
//	subject.go     the promotion that a HealthCheck is measured for
//	state.go       what is known of a HealthCheck from one pass to the next
//	plan.go        the next measurement
//	status.go      the only write
package measurement

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/background"
	"github.com/fluxrollouts/rollout-controller/internal/cache/expectations"
	"github.com/fluxrollouts/rollout-controller/internal/health/class"
	"github.com/fluxrollouts/rollout-controller/internal/health/pool"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/internal/shard"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// +kubebuilder:rbac:groups=kuberik.com,resources=healthchecks,verbs=get;list;watch
// +kubebuilder:rbac:groups=kuberik.com,resources=healthchecks/status,verbs=get;patch
// +kubebuilder:rbac:groups=kuberik.com,resources=rollouts,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// Reconciler measures HealthChecks, and records what the measurements mean.
type Reconciler struct {
	// Client reads from caches and writes.
	Client client.Client
	// Means are what probes measure with.
	Means class.Means
	// Pool measures when it is time.
	Pool *pool.Pool
	// Now is the clock.
	Now func() time.Time
	// Durations records how long reconciliations take; nil records nothing.
	Durations *metrics.Durations
	// Shard is the part of the HealthChecks that this instance measures.
	Shard shard.Shard

	writes expectations.Versions
	states states
	woken  background.Waker
	wake   func(check types.NamespacedName) // reconciles a check that was measured
}

// Reconcile records the last measurement of one HealthCheck, and plans the next one.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	pass := &announce.Pass{}
	result, err := r.pass(ctx, req, pass)
	return pass.End(ctx, result, err)
}

func (r *Reconciler) pass(ctx context.Context, req ctrl.Request, pass *announce.Pass) (ctrl.Result, error) {
	check := &v1alpha1.HealthCheck{}
	if err := r.Client.Get(ctx, req.NamespacedName, check, client.UnsafeDisableDeepCopy); err != nil { // only read
		r.forget(req.NamespacedName)
		pass.Ends("the HealthCheck does not exist or cannot be read")
		return ctrl.Result{}, unreadable.Ignore(client.IgnoreNotFound(err))
	}
	switch {
	case !r.measures(check):
		r.forget(req.NamespacedName)
		pass.Ends("others write the HealthCheck, or it is being deleted")
		return ctrl.Result{}, nil
	case r.writes.Stale(check):
		pass.Ends("the cache does not show the last write to the HealthCheck yet, whose event is on its way")
		return ctrl.Result{}, nil
	}
	return r.reconcile(ctx, check, pass)
}

// measures reports whether this instance measures the HealthCheck.
func (r *Reconciler) measures(check *v1alpha1.HealthCheck) bool {
	return check.IsMeasured() && check.DeletionTimestamp.IsZero() && r.Shard.Handles(check)
}

func (r *Reconciler) forget(check types.NamespacedName) {
	r.Pool.Drop(check)
	r.states.forget(check)
}

func (r *Reconciler) reconcile(ctx context.Context, check *v1alpha1.HealthCheck, pass *announce.Pass) (ctrl.Result, error) {
	subject, err := r.subjectOf(ctx, check)
	if err != nil {
		return ctrl.Result{}, err
	}
	now, s := r.Now(), r.states.of(client.ObjectKeyFromObject(check))
	s.see(check, r.Means, now)
	next := s.advance(check, &subject, now)
	pass.Decided(next)
	wait, err := r.record(ctx, check, s, next, pass)
	if err != nil || wait < 0 {
		return ctrl.Result{}, err
	}
	r.plan(check, s, subject, next)
	return ctrl.Result{RequeueAfter: next.wait(wait, now)}, nil
}
