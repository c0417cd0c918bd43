// SPDX-License-Identifier: Apache-2.0

// Package healthcheck evaluates HealthChecks of the class "kustomization": it looks at the
// objects that a Flux Kustomization or HelmRelease has applied, and writes whether they are
// healthy.
//
//	controller.go   one evaluation, from the read of the check to the write
//	watches.go      options, indexes, and which events lead to an evaluation
//	kinds.go        watches the kinds in inventories while checks need them
//	informer.go     how one of them is watched: metadata only
//	sharing.go      one look serves all checks that are about the same
//	evaluations.go  the state that is kept from one evaluation to the next
//	status.go       the write
package healthcheck

import (
	"context"
	"sync/atomic"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/internal/shard"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

const (
	// evaluationPace is the minimum time between two looks at the same because of
	// events: a Deployment that rolls out changes many times a second. For checks
	// that were reset, at most two looks happen in that time.
	evaluationPace = time.Second
	// messagePace is the minimum time between two writes that change only the message.
	messagePace = 10 * time.Second
	// evaluationTimeout keeps an API server that does not answer from blocking a
	// worker.
	evaluationTimeout = 30 * time.Second
	// firstRetry is how soon a failed read is repeated. The delay then doubles.
	firstRetry = time.Second
)

// +kubebuilder:rbac:groups=kuberik.com,resources=healthchecks,verbs=get;list;watch
// +kubebuilder:rbac:groups=kuberik.com,resources=healthchecks/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=kustomize.toolkit.fluxcd.io,resources=kustomizations,verbs=get;list;watch
// +kubebuilder:rbac:groups=helm.toolkit.fluxcd.io,resources=helmreleases,verbs=get;list;watch

// Reconciler evaluates the HealthChecks of the class "kustomization" and leaves all
// others to their writers.
//
// A check is evaluated with live reads, and only when something changes: the check,
// what it is about, or an object in the inventory. It is evaluated after a delay only
// where no event can trigger it: after a failed read, and for kinds that may be read
// but not watched, or are not watched yet.
type Reconciler struct {
	// Client reads from caches and writes.
	Client client.Client
	// Objects reads what Kustomizations have applied, past the caches.
	Objects kustomization.Objects
	// Now is the clock.
	Now func() time.Time
	// NoCrossNamespaceRefs refuses what is in other namespaces.
	NoCrossNamespaceRefs bool
	// Durations records how long reconciliations take; nil records nothing.
	Durations *metrics.Durations
	// Shard is the part of the HealthChecks that this instance evaluates.
	Shard shard.Shard

	checker     checker
	watches     *kindWatches
	sharing     sharing
	evaluations evaluations
	wake        func(check types.NamespacedName) // puts the check into the queue
	cache       cache.Cache
	watch       func(source.Source) error
	helmWatched atomic.Bool // not every cluster serves HelmReleases
	retries     workqueue.TypedRateLimiter[reconcile.Request]
}

// checker evaluates HealthChecks; kustomization.Checker implements it. It reads and never
// writes. An object that it cannot read makes the result Pending, not Unhealthy.
type checker interface {
	Subject(check *v1alpha1.HealthCheck) (kustomization.Subject, *health.Result)
	Look(ctx context.Context, subject kustomization.Subject) health.Finding
}

// Reconcile evaluates one HealthCheck.
//
// The check is read before the objects that it is about. The pass of another check
// about the same may be the one that reads those objects. The verdict is written only
// if the check has not changed since it was read. So a reset in between refuses the
// verdict, whether it came during the reads or was missing in a cache that lags. A
// verdict that is written was reached after the last reset.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	pass := &announce.Pass{}
	result, err := r.pass(ctx, req, pass)
	return pass.End(ctx, result, err)
}

func (r *Reconciler) pass(ctx context.Context, req ctrl.Request, pass *announce.Pass) (ctrl.Result, error) {
	check := &v1alpha1.HealthCheck{}
	if err := r.Client.Get(ctx, req.NamespacedName, check); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req)
			pass.Ends("the HealthCheck does not exist")
		}
		return ctrl.Result{}, unreadable.Ignore(client.IgnoreNotFound(err))
	}
	if !r.evaluates(check) {
		r.forget(req)
		pass.Ends("others evaluate the HealthCheck, or it is being deleted")
		return ctrl.Result{}, nil
	}
	r.evaluations.begin(req.NamespacedName)
	result, again := r.evaluate(ctx, check)
	if result == nil {
		pass.Ends("another HealthCheck has the same looked at, or that was done a moment ago")
		return ctrl.Result{RequeueAfter: again}, nil
	}
	pass.Decided(*result)
	r.evaluations.found(req.NamespacedName, *result)
	r.logUnobserved(ctx, check, result.Err)
	watched := r.follow(check, *result)
	wait, err := r.record(ctx, check, *result, pass)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: soonest(soonest(wait, again), r.recheck(req, check, *result, watched))}, nil
}

// evaluate returns the result for the check, and how long to wait before the next look
// without an event. The result is nil if it is too early.
func (r *Reconciler) evaluate(ctx context.Context, check *v1alpha1.HealthCheck) (*health.Result, time.Duration) {
	subject, verdict := r.checker.Subject(check)
	if verdict != nil {
		return verdict, 0
	}
	got := r.sharing.ask(client.ObjectKeyFromObject(check), check.ResourceVersion, subject, r.Now())
	if got.looks {
		got.finding = r.look(ctx, subject)
	}
	if got.finding == nil {
		return nil, got.again
	}
	result := got.finding.For(check.Status.Status)
	return &result, got.again
}

// look looks on behalf of all checks that ask meanwhile, also if it panics.
func (r *Reconciler) look(ctx context.Context, subject kustomization.Subject) (finding *health.Finding) {
	defer func() {
		for _, check := range r.sharing.end(subject, finding, r.Now()) {
			r.wake(check)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, evaluationTimeout)
	defer cancel()
	found := r.checker.Look(ctx, subject)
	return &found
}

// logUnobserved logs why not everything could be observed. Only the first attempt is
// logged at info, because the read is retried.
func (r *Reconciler) logUnobserved(ctx context.Context, check *v1alpha1.HealthCheck, err error) {
	if err == nil {
		return
	}
	again := min(1, r.retries.NumRequeues(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(check)}))
	ctrl.LoggerFrom(ctx).V(again).Info("could not observe everything", "reason", announce.Shorten(err).Error())
}

// follow watches the kinds of the inventory, and reports whether all are watched, and what
// has the inventory. If that could not be read, its inventory is assumed to be unchanged.
func (r *Reconciler) follow(check *v1alpha1.HealthCheck, result health.Result) bool {
	if result.Err != nil && result.Basis == "" {
		return true
	}
	subject, _ := r.checker.Subject(check)
	watched := r.watches.use(client.ObjectKeyFromObject(check), subject.Kind, result.Kinds)
	return watched && (subject.Kind != helmv2.HelmReleaseKind || r.helmWatched.Load())
}

// recheck returns how long to wait before the next look without an event; zero means
// never.
//
// A kind that may not be watched is looked at in intervals, whatever the status of the
// check: a bake may depend on a Healthy check, and an Unhealthy one holds promotions
// back.
func (r *Reconciler) recheck(req ctrl.Request, check *v1alpha1.HealthCheck, result health.Result, watched bool) time.Duration {
	var wait time.Duration
	if result.Err != nil {
		wait = r.retries.When(req)
	} else {
		r.retries.Forget(req)
	}
	if !watched {
		wait = soonest(wait, kustomization.Interval(check))
	}
	if !result.RecheckAt.IsZero() {
		wait = soonest(wait, max(result.RecheckAt.Sub(r.Now()), evaluationPace))
	}
	return wait
}

// soonest returns the shorter duration, where zero means never.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

func (r *Reconciler) forget(req ctrl.Request) {
	r.watches.drop(req.NamespacedName)
	r.evaluations.forget(req.NamespacedName)
	r.sharing.forget(req.NamespacedName)
	r.retries.Forget(req)
}

// evaluates reports whether the check is evaluated by this instance.
func (r *Reconciler) evaluates(check *v1alpha1.HealthCheck) bool {
	return isEvaluated(check) && r.Shard.Handles(check)
}

func isEvaluated(check *v1alpha1.HealthCheck) bool {
	return check.IsClass(v1alpha1.HealthCheckClassKustomization) && check.DeletionTimestamp.IsZero()
}
