// SPDX-License-Identifier: Apache-2.0

// Package environment is the reconciler of Environments. Package environment in internal
// says what an environment has proven. This package records it, for the environments
// after it and for dashboards.
//
// The files in reading order:
//
//	controller.go  one pass over an Environment
//	watches.go     the events that trigger a pass
//	status.go      the only write of a status
//	ready.go       its conditions
//	reports.go     the reports that go to other clusters, and those that come from there
//	events.go      the events
package environment

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/cache/expectations"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
	"github.com/fluxrollouts/rollout-controller/internal/registry/fetch"
	"github.com/fluxrollouts/rollout-controller/internal/registry/publish"
	"github.com/fluxrollouts/rollout-controller/internal/shard"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// +kubebuilder:rbac:groups=environments.kuberik.com,resources=environments,verbs=get;list;watch
// +kubebuilder:rbac:groups=environments.kuberik.com,resources=environments/status,verbs=get;patch

// Reconciler records what environments say of the releases that they have deployed, and
// what their upstreams say. It promotes and holds nothing: Rollouts read the record.
type Reconciler struct {
	// Client reads from caches and writes. It needs the indexes of [gather.Index] and
	// [gather.IndexEnvironments].
	Client client.Client
	// Events announces transitions.
	Events record.EventRecorder
	// Now is the clock.
	Now func() time.Time
	// NoCrossNamespaceRefs refuses upstreams and HealthChecks of other namespaces.
	NoCrossNamespaceRefs bool
	// Durations records how long reconciliations take; nil records nothing.
	Durations *metrics.Durations
	// Shard is the part of the Rollouts whose Environments this instance reconciles.
	Shard shard.Shard
	// Reports reads what upstreams in other clusters say, in the background; nil leaves it
	// out.
	Reports *fetch.Store
	// Publisher publishes what environments say, in the background; nil leaves it out.
	Publisher *publish.Publisher

	writes expectations.Versions
}

// Reconcile records what one environment says now.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	pass := &announce.Pass{}
	result, err := r.pass(ctx, req, pass)
	return pass.End(ctx, result, err)
}

func (r *Reconciler) pass(ctx context.Context, req ctrl.Request, pass *announce.Pass) (ctrl.Result, error) {
	e := &environmentsv1.Environment{}
	if err := r.Client.Get(ctx, req.NamespacedName, e, client.UnsafeDisableDeepCopy); err != nil { // only read
		r.forget(req.NamespacedName)
		pass.Ends("the Environment does not exist or cannot be read")
		return ctrl.Result{}, unreadable.Ignore(client.IgnoreNotFound(err))
	}
	switch {
	case isForeign(e):
		r.forget(req.NamespacedName)
		pass.Ends("the Environment is another controller's, or being deleted")
		return ctrl.Result{}, nil
	case r.writes.Stale(e):
		pass.Ends("the cache does not show the last write to the Environment yet, whose event is on its way")
		return ctrl.Result{}, nil
	}
	rollout, exists, err := r.rolloutOf(ctx, e)
	if err != nil || rollout == nil {
		pass.Ends("its Rollout is another instance's, or cannot be read")
		return ctrl.Result{}, unreadable.Ignore(err)
	}
	return r.reconcile(ctx, observed{Environment: e, rollout: rollout, exists: exists, now: r.Now()}, pass)
}

// isForeign reports whether this controller leaves the Environment alone.
func isForeign(e *environmentsv1.Environment) bool {
	return e.Spec.Backend.Type == environmentsv1.BackendGitHub || !e.DeletionTimestamp.IsZero()
}

// rolloutOf returns the Rollout of an Environment. If it exists nowhere, an empty one
// stands for it, and exists is false. It is nil if another instance reconciles it: that
// one records its Environments, too.
func (r *Reconciler) rolloutOf(ctx context.Context, e *environmentsv1.Environment) (rollout *v1alpha1.Rollout, exists bool, err error) {
	key := client.ObjectKey{Namespace: e.Namespace, Name: e.Spec.RolloutRef.Name}
	rollout = &v1alpha1.Rollout{}
	err = r.Client.Get(ctx, key, rollout, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return nil, false, fmt.Errorf("get Rollout %s: %w", key, err)
	}
	if err == nil {
		return rollout, true, nil
	}
	otherInstance, err := r.Shard.Exists(ctx, key)
	if err != nil || otherInstance || !r.Shard.TakesUnlabelled() {
		return nil, false, err
	}
	none := &v1alpha1.Rollout{}
	none.Namespace, none.Name = key.Namespace, key.Name
	return none, false, nil
}

// observed is what a pass found.
type observed struct {
	*environmentsv1.Environment
	rollout  *v1alpha1.Rollout
	exists   bool // the Rollout exists
	now      time.Time
	read     upstream.Environment
	releases []environmentsv1.Release
	// infos is what dashboards are shown.
	infos       []environmentsv1.EnvironmentInfo
	infosDigest string
	published   publish.Publication
}

func (r *Reconciler) reconcile(ctx context.Context, o observed, pass *announce.Pass) (ctrl.Result, error) {
	g := gather.Gatherer{Client: r.Client, NoCrossNamespaceRefs: r.NoCrossNamespaceRefs, Environments: true}
	if r.Reports != nil {
		g.Reports = r.Reports.Gathered()
	}
	view, err := g.EnvironmentView(ctx, o.rollout, environment.Recorded(o.Environment))
	if unreadable.Ignore(err) != nil {
		return ctrl.Result{}, err
	}
	if o.releases = environment.Record(view, o.now); environment.Same(o.releases, o.Status.Releases) {
		o.releases = o.Status.Releases
	}
	r.lookAround(o)
	var failed error
	o.read, failed = g.Environment(ctx, o.Environment)
	r.readNothing(&o.read)
	var unpublished error
	o.published, unpublished = r.publish(ctx, o)
	failed = errors.Join(failed, unpublished)
	o.infos, o.infosDigest = environment.Infos(o.Environment, o.rollout, g.Neighbors(ctx, o.Environment))
	pass.Decided(o)
	err = r.report(ctx, o, pass)
	if apierrors.IsConflict(err) {
		pass.Ends("the Environment has changed since it was read")
		return ctrl.Result{RequeueAfter: recheck.AfterConflict}, nil
	}
	if err == nil {
		err = unreadable.Ignore(failed)
	}
	if renewal := environment.RenewalAt(o.releases); err == nil && renewal.After(o.now) { // otherwise a HealthCheck is awaited
		return ctrl.Result{RequeueAfter: renewal.Sub(o.now)}, nil
	}
	return ctrl.Result{}, err
}
