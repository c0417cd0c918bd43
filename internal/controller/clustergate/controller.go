// SPDX-License-Identifier: Apache-2.0

// Package clustergate is the reconciler of ClusterRolloutGates. It shows in their status how
// many Rollouts they select, and whether their selectors can be used. Rollouts evaluate the
// gates themselves.
//
// The files in reading order:
//
//	controller.go  one pass over a gate
//	watches.go     the events that trigger a pass
//	status.go      the only write of a status
package clustergate

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// +kubebuilder:rbac:groups=kuberik.com,resources=clusterrolloutgates/status,verbs=patch

// Reconciler shows the state of ClusterRolloutGates.
type Reconciler struct {
	// Client reads from caches and writes.
	Client client.Client
	// Now is the clock.
	Now func() time.Time
	// Durations records how long reconciliations take; nil records nothing.
	Durations *metrics.Durations
	// Shard is the part of the gates that this instance reconciles.
	Shard shard.Shard

	writes expectations.Versions
}

// Reconcile writes the status of one gate if it has changed.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	pass := &announce.Pass{}
	result, err := r.pass(ctx, req, pass)
	return pass.End(ctx, result, err)
}

func (r *Reconciler) pass(ctx context.Context, req ctrl.Request, pass *announce.Pass) (ctrl.Result, error) {
	gate := &v1alpha1.ClusterRolloutGate{}
	switch err := r.Client.Get(ctx, req.NamespacedName, gate); {
	case err != nil:
		pass.Ends("the gate does not exist, or cannot be read")
		return ctrl.Result{}, unreadable.Ignore(client.IgnoreNotFound(err))
	case !r.Shard.Handles(gate), !gate.DeletionTimestamp.IsZero(), r.writes.Stale(gate):
		pass.Ends("the gate is another instance's, being deleted, or newer than the cache shows")
		return ctrl.Result{}, nil
	}
	matching, err := r.countRollouts(ctx, gate)
	if err != nil {
		return ctrl.Result{}, err
	}
	err = r.record(ctx, gate, observe(gate, matching, r.Now()), pass)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: recheck.AfterConflict}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// countRollouts counts the Rollouts of all instances that a gate selects.
func (r *Reconciler) countRollouts(ctx context.Context, gate *v1alpha1.ClusterRolloutGate) (int, error) {
	rollouts, err := gather.RolloutsOfGate(ctx, r.Shard.Rollouts(r.Client), gate)
	if err != nil || gate.Spec.NamespaceSelector == nil {
		return len(rollouts), err
	}
	namespaces, err := gather.Namespaces(ctx, r.Client)
	if err != nil {
		return 0, err
	}
	selected := map[string]bool{}
	for i := range namespaces {
		selected[namespaces[i].Name] = gather.GateSelectsNamespace(gate, namespaces[i].Labels)
	}
	count := 0
	for _, rollout := range rollouts {
		if selected[rollout.Namespace] {
			count++
		}
	}
	return count, nil
}
