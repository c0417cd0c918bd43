// SPDX-License-Identifier: Apache-2.0

// Package schedule is the reconciler of RolloutSchedules and ClusterRolloutSchedules.
// Package schedule in internal says when a schedule is open. This package shows it.
//
// The files in reading order:
//
//	controller.go  one pass over a schedule
//	watches.go     the events that trigger a pass
//	gates.go       the gates that show the state of a schedule
//	leftovers.go   the gates that a schedule left behind
//	status.go      the only write of a status
//	events.go      the events
package schedule

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/cache/expectations"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
	"github.com/fluxrollouts/rollout-controller/internal/shard"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// +kubebuilder:rbac:groups=kuberik.com,resources=rolloutgates,verbs=create;delete;patch
// +kubebuilder:rbac:groups=kuberik.com,resources=rolloutschedules/status;clusterrolloutschedules/status,verbs=patch
// +kubebuilder:rbac:groups=kuberik.com,resources=rolloutschedules/finalizers;clusterrolloutschedules/finalizers,verbs=update

// Reconciler shows the state of schedules of one kind: in their status, and in a
// RolloutGate for each Rollout that they select.
//
// These gates neither promote nor hold anything. Rollouts evaluate the schedules
// themselves. The gates are for users, dashboards and scripts.
type Reconciler struct {
	// Client reads from caches and writes.
	Client client.Client
	// Events announces transitions.
	Events record.EventRecorder
	// Now is the clock.
	Now func() time.Time
	// Cluster is true for ClusterRolloutSchedules, false for RolloutSchedules.
	Cluster bool
	// Durations records how long reconciliations take; nil records nothing.
	Durations *metrics.Durations
	// Shard is the part of the schedules that this instance reconciles.
	Shard shard.Shard

	writes expectations.Versions
}

// Reconcile updates the gates and the status of one schedule, and runs again at its next
// transition.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	pass := &announce.Pass{}
	result, err := r.pass(ctx, req, pass)
	return pass.End(ctx, result, err)
}

func (r *Reconciler) pass(ctx context.Context, req ctrl.Request, pass *announce.Pass) (ctrl.Result, error) {
	o := r.kind()
	switch err := r.Client.Get(ctx, req.NamespacedName, o); {
	case apierrors.IsNotFound(err):
		return r.collect(ctx, req.NamespacedName, pass)
	case err != nil:
		pass.Ends("the schedule cannot be read")
		return ctrl.Result{}, unreadable.Ignore(err)
	}
	if !r.Shard.Handles(o) || !o.GetDeletionTimestamp().IsZero() || r.writes.Stale(o) {
		pass.Ends("the schedule is another instance's, being deleted, or newer than the cache shows")
		return ctrl.Result{}, nil
	}
	return r.reconcile(ctx, gather.ScheduleOf(o), pass)
}

func (r *Reconciler) kind() client.Object {
	if r.Cluster {
		return &v1alpha1.ClusterRolloutSchedule{}
	}
	return &v1alpha1.RolloutSchedule{}
}

func (r *Reconciler) reconcile(ctx context.Context, s gather.Schedule, pass *announce.Pass) (ctrl.Result, error) {
	now := r.Now()
	rollouts, err := r.rolloutsOf(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	state, problem := s.Evaluate(now)
	gates, more, failures := r.keepGates(ctx, s, rollouts, state.Open)
	found := observation{
		Schedule: s, now: now, state: state, problem: problem, gates: gates, rollouts: len(rollouts), failures: failures,
	}
	pass.Decided(found)
	err = r.report(ctx, found, pass)
	failed := append(failures, err)
	switch err := errors.Join(slices.DeleteFunc(slices.Clone(failed), isBehind)...); {
	case err != nil:
		return ctrl.Result{}, err
	case slices.ContainsFunc(failed, isBehind):
		pass.Ends("a gate or the schedule has changed since it was read")
		return ctrl.Result{RequeueAfter: recheck.AfterConflict}, nil
	case more:
		return ctrl.Result{RequeueAfter: recheck.AtOnce}, nil
	case state.Next.IsZero():
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: max(state.Next.Sub(r.Now()), recheck.AtOnce)}, nil
}

// rolloutsOf returns the Rollouts of all instances that the schedule selects, sorted.
// They are the objects in the cache.
func (r *Reconciler) rolloutsOf(ctx context.Context, s gather.Schedule) ([]*v1alpha1.Rollout, error) {
	rollouts, err := gather.RolloutsOfSchedule(ctx, r.Shard.Rollouts(r.Client), s)
	if err != nil {
		return nil, err
	}
	if s.Namespaces != nil {
		namespaces, err := r.namespacesOf(ctx, s)
		if err != nil {
			return nil, err
		}
		rollouts = slices.DeleteFunc(rollouts, func(o *v1alpha1.Rollout) bool { return !namespaces[o.Namespace] })
	}
	slices.SortFunc(rollouts, func(a, b *v1alpha1.Rollout) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return rollouts, nil
}

func (r *Reconciler) namespacesOf(ctx context.Context, s gather.Schedule) (map[string]bool, error) {
	list, err := gather.Namespaces(ctx, r.Client)
	if err != nil {
		return nil, err
	}
	selected := map[string]bool{}
	for i := range list {
		if s.SelectsNamespace(list[i].Labels) {
			selected[list[i].Name] = true
		}
	}
	return selected, nil
}
