// SPDX-License-Identifier: Apache-2.0

// Package quarantine is the reconciler of ReleaseQuarantines and ClusterReleaseQuarantines.
// It shows in their status what follows from them, and deletes those of the controller
// that have held nothing for a week. Rollouts evaluate quarantines themselves, and report
// to them. Package quarantine in internal has the rules.
package quarantine

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/cache/expectations"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
	"github.com/fluxrollouts/rollout-controller/internal/shard"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// +kubebuilder:rbac:groups=kuberik.com,resources=releasequarantines,verbs=delete
// +kubebuilder:rbac:groups=kuberik.com,resources=releasequarantines/status;clusterreleasequarantines/status,verbs=patch

// Reconciler shows the state of quarantines of one kind.
type Reconciler struct {
	// Client reads from caches and writes.
	Client client.Client
	// Now is the clock.
	Now func() time.Time
	// Cluster is true for ClusterReleaseQuarantines, false for ReleaseQuarantines.
	Cluster bool
	// Metrics counts quarantines by phase; nil counts nothing.
	Metrics *metrics.Quarantines
	// Durations records how long reconciliations take; nil records nothing.
	Durations *metrics.Durations
	// Shard is the part of the quarantines that this instance reconciles.
	Shard shard.Shard

	writes expectations.Versions
}

// SetupWithManager registers the watch.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	name, kind := "quarantine", v1alpha1.ReleaseQuarantineKind
	if r.Cluster {
		name, kind = "clusterquarantine", v1alpha1.ClusterReleaseQuarantineKind
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(r.kind(), builder.WithPredicates(r.Shard.Predicate())).
		WithEventFilter(r.writes.ForgetGone()).
		WithOptions(options).
		Complete(r.Durations.Of(kind, r, r.Shard.Handles, r.kind))
}

func (r *Reconciler) kind() client.Object {
	if r.Cluster {
		return &v1alpha1.ClusterReleaseQuarantine{}
	}
	return &v1alpha1.ReleaseQuarantine{}
}

// Reconcile writes the status of one quarantine if it has changed, and comes back when
// time alone changes it.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	pass := &announce.Pass{}
	result, err := r.pass(ctx, req, pass)
	return pass.End(ctx, result, err)
}

func (r *Reconciler) pass(ctx context.Context, req ctrl.Request, pass *announce.Pass) (ctrl.Result, error) {
	o := r.kind()
	err := r.Client.Get(ctx, req.NamespacedName, o)
	switch {
	case apierrors.IsNotFound(err), err == nil && (!r.Shard.Handles(o) || !o.GetDeletionTimestamp().IsZero()):
		r.Metrics.Forget(req.NamespacedName)
		pass.Ends("the quarantine does not exist, is being deleted, or is another instance's")
		return ctrl.Result{}, nil
	case err != nil:
		pass.Ends("the quarantine cannot be read")
		return ctrl.Result{}, unreadable.Ignore(err)
	case r.writes.Stale(o):
		pass.Ends("the cache does not show the last write to the quarantine yet, whose event is on its way")
		return ctrl.Result{}, nil
	}
	return r.reconcile(ctx, o, pass)
}

func (r *Reconciler) reconcile(ctx context.Context, o client.Object, pass *announce.Pass) (ctrl.Result, error) {
	spec, status := quarantine.Parts(o)
	now := r.Now()
	if at := reportDue(o, status); !spec.Lifted && at.After(now) {
		pass.Ends("the controller has created the quarantine a moment ago, and its first failure is on its way")
		return ctrl.Result{RequeueAfter: recheck.In(at, now, r.Now())}, nil
	}
	counted := quarantine.Counted(*status, quarantine.IsManaged(o), o.GetCreationTimestamp().Time)
	next := quarantine.Settle(spec, counted, o.GetGeneration(), now)
	if r.isOver(o, &next, now) {
		return ctrl.Result{}, r.delete(ctx, o)
	}
	if !equality.Semantic.DeepEqual(*status, next) {
		if err := r.record(ctx, o, *status, next); err != nil {
			if apierrors.IsConflict(err) {
				return ctrl.Result{RequeueAfter: recheck.AfterConflict}, nil
			}
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		pass.Stored(true)
		announce.Change(ctx, string(next.Phase), o.GetName())
	}
	r.Metrics.Observe(client.ObjectKeyFromObject(o), next.Phase)
	return r.again(o, spec, &next, now), nil
}

// reportDue returns until when a quarantine is left to the Rollout that creates it; zero if it
// is not.
func reportDue(o client.Object, status *v1alpha1.ReleaseQuarantineStatus) time.Time {
	if !quarantine.IsManaged(o) || len(status.Failures) > 0 || status.Phase != "" {
		return time.Time{}
	}
	return o.GetCreationTimestamp().Add(quarantine.ReportedWithin)
}

// isOver reports whether a quarantine is to be deleted. Those of users stay: they may be in
// Git, which would create them again.
func (r *Reconciler) isOver(o client.Object, status *v1alpha1.ReleaseQuarantineStatus, now time.Time) bool {
	return quarantine.IsManaged(o) && status.EndedAt != nil && !now.Before(status.EndedAt.Add(quarantine.KeptFor))
}

func (r *Reconciler) delete(ctx context.Context, o client.Object) error {
	version, uid := o.GetResourceVersion(), o.GetUID()
	err := r.Client.Delete(ctx, o, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete quarantine %s: %w", client.ObjectKeyFromObject(o), err)
	}
	return nil
}

// again returns when time alone changes the quarantine.
func (r *Reconciler) again(o client.Object, spec *v1alpha1.ReleaseQuarantineSpec, status *v1alpha1.ReleaseQuarantineStatus, began time.Time) ctrl.Result {
	at := quarantine.Next(spec, status, began)
	if quarantine.IsManaged(o) && status.EndedAt != nil {
		if over := status.EndedAt.Add(quarantine.KeptFor); at.IsZero() || over.Before(at) {
			at = over
		}
	}
	if at.IsZero() {
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: recheck.In(at, began, r.Now())}
}
