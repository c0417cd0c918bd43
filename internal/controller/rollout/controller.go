// SPDX-License-Identifier: Apache-2.0

// Package rollout is the reconciler of Rollouts. Package gather reads what a decision
// needs, package promotion decides what a Rollout does next, and package rolloutstatus
// derives the status from that. This package records it, carries it out and announces it.
//
// The files in reading order:
//
//	controller.go     one pass over a Rollout, step by step
//	watches.go        the events that trigger a pass, and the Rollouts that they concern
//	late_watches.go   watches of kinds that not every cluster serves
//	helmreleases.go   the one that begins once HelmReleases are served
//	gitrepositories.go
//	                  the same of GitRepositories
//	consumers.go      the watch of what consumes a source from other namespaces
//	quarantines.go    failures that are reported to ReleaseQuarantines, and their watch
//	quarantines_record.go
//	                  the write of a failure, or of its outcome
//	reported.go       what was reported, and what could not be
//	environments.go   the watch of Environments, where they are served
//	mirror.go         the gate that shows other clients what else holds releases
//	target_checks.go  the HealthChecks of targets that Rollouts own
//	gather.go         what package gather cannot know: own writes, rejections, conflicts
//	images.go         what registries say of images
//	reports.go        what upstreams in other clusters say
//	decide.go         the decision, and what is confirmed before it is taken
//	identity.go       the watch of the policies that vouch for names
//	approvals.go      the approvals of a release, listed before it is promoted
//	authors.go        who wrote the texts next to a manual choice
//	record.go         the only write of the status
//	unwritable.go     a status that the API server does not store
//	events.go         the transitions that are announced once they are stored
//	notifications.go  the same as Flux events
//	metrics.go        the same in numbers
//	requests.go       the removal of requests that are used up
//	act.go            the writes to targets
//	confirm.go        the read that keeps an old cache from writing
//	conflict.go       fields that others write too
//	rejections.go     writes that the API server rejects
//	reset_status.go   the resets of HealthChecks
//	reset_marks.go    marks of resets whose Rollout is gone
//	orphans.go        targets that name a Rollout that does not exist
//	memory.go         what is remembered from one pass to the next
package rollout

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/background"
	"github.com/fluxrollouts/rollout-controller/internal/cache/expectations"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/approvals"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
	"github.com/fluxrollouts/rollout-controller/internal/registry/fetch"
	"github.com/fluxrollouts/rollout-controller/internal/registry/imageinfo"
	"github.com/fluxrollouts/rollout-controller/internal/rolloutstatus"
	"github.com/fluxrollouts/rollout-controller/internal/shard"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// +kubebuilder:rbac:groups=kuberik.com,resources=rollouts,verbs=get;list;watch;patch;update
// +kubebuilder:rbac:groups=kuberik.com,resources=rollouts/status,verbs=get;patch;update
// +kubebuilder:rbac:groups=kuberik.com,resources=rolloutgates;rolloutschedules;clusterrolloutschedules,verbs=get;list;watch
// +kubebuilder:rbac:groups=kuberik.com,resources=rolloutgates,verbs=create;patch;delete
// +kubebuilder:rbac:groups=kuberik.com,resources=healthchecks,verbs=get;list;watch;create;patch;update;delete
// +kubebuilder:rbac:groups=kuberik.com,resources=healthchecks/status,verbs=get;patch;update
// +kubebuilder:rbac:groups=image.toolkit.fluxcd.io,resources=imagepolicies;imagerepositories,verbs=get;list;watch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=ocirepositories,verbs=get;list;watch;patch;update
// +kubebuilder:rbac:groups=kustomize.toolkit.fluxcd.io,resources=kustomizations,verbs=get;list;watch;patch;update
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Reconciler promotes releases as Rollouts specify.
type Reconciler struct {
	// Client reads from caches and writes.
	Client client.Client
	// APIReader reads past the caches, before a step that cannot be undone.
	APIReader client.Reader
	// Objects reads what Kustomizations have applied, past the caches.
	Objects kustomization.Objects
	// Events announces transitions.
	Events record.EventRecorder
	// Now is the clock.
	Now func() time.Time
	// Metadata reads the metadata of releases from registries, in the background; nil
	// leaves it out.
	Metadata *imageinfo.Store
	// Reports reads what upstreams in other clusters say, in the background; nil leaves it
	// out.
	Reports *fetch.Store
	// Notifications takes Flux events; nil sends none.
	Notifications Notifications
	// Instance names this process in Flux events.
	Instance string
	// Metrics counts what Rollouts do; nil counts nothing.
	Metrics *metrics.Rollouts
	// Durations records how long reconciliations take; nil records nothing.
	Durations *metrics.Durations
	// Shard is the part of the Rollouts that this instance reconciles.
	Shard shard.Shard
	// NoCrossNamespaceRefs refuses HealthChecks, ImageRepositories, OCIRepositories and
	// Environments of other namespaces.
	NoCrossNamespaceRefs bool
	// QuarantinesEverywhere lets the ReleaseQuarantines of all namespaces count.
	QuarantinesEverywhere bool
	// Identity says whether the names in approvals can be trusted; without it, none can.
	Identity func(context.Context) approvals.Identity
	// ApprovalRetention is how long approvals are kept after their end; zero means 90 days.
	ApprovalRetention time.Duration
	// QuarantinesReadOnly leaves failures unreported, because a right is missing.
	QuarantinesReadOnly bool

	writes      expectations.Versions
	windows     gather.Windows
	generators  gather.Generators
	memory      memory
	marks       markCounts
	targetLists targetLists
	late        lateWatches
	// wakeups reconcile Rollouts in time although their pass has failed: controller-runtime
	// tries again only after the back-off of the error, which may end later than a bake.
	wakeups background.Waker
	// started looks at the objects of Kustomizations that did not become healthy.
	started gather.Started
}

// Reconcile takes one decision for a Rollout and carries it out.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	pass := &announce.Pass{}
	defer r.memory.settle(req.NamespacedName)
	result, err := r.pass(ctx, req, pass)
	return pass.End(ctx, result, err)
}

func (r *Reconciler) pass(ctx context.Context, req ctrl.Request, pass *announce.Pass) (ctrl.Result, error) {
	rollout := &v1alpha1.Rollout{}
	err := r.Client.Get(ctx, req.NamespacedName, rollout, client.UnsafeDisableDeepCopy) // only read
	if apierrors.IsNotFound(err) {
		r.forget(req.NamespacedName)
		pass.Ends("the Rollout does not exist")
		return r.reportOrphans(ctx, req.NamespacedName)
	}
	r.memory.of(req.NamespacedName).orphans = nil
	switch {
	case unreadable.Because(err) != nil:
		pass.Ends("the Rollout cannot be read, and targets stay as they are until it is corrected")
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, err
	case !rollout.DeletionTimestamp.IsZero(), rollout.Spec.Suspend:
		r.forgetInactive(req.NamespacedName)
		pass.Ends("the Rollout is suspended or being deleted, and targets stay as they are")
		return ctrl.Result{}, nil
	case r.writes.Stale(rollout):
		pass.Ends("the cache does not show the last write to the Rollout yet, whose event is on its way")
		return ctrl.Result{}, nil
	}
	return r.reconcile(ctx, rollout, pass)
}

// reconcile takes the steps of a pass. The history states what to do (4) before any target
// is written (6), so that any later pass can finish it, also after a crash.
func (r *Reconciler) reconcile(ctx context.Context, rollout *v1alpha1.Rollout, pass *announce.Pass) (ctrl.Result, error) {
	// 1. Gather everything that a decision needs. What cannot be read is a fact as well.
	s := r.gather(ctx, rollout)

	// 2. Decide, once everything that the decision depends on was seen.
	d, err := r.decide(ctx, &s)
	if pass.Decided(d); err != nil {
		return giveUp(pass, err)
	}

	// 3. Derive the status that follows from the decision.
	status, err := rolloutstatus.After(s.Input, d)
	if err != nil {
		return ctrl.Result{}, err
	}

	// 4. Record that status, under an optimistic lock.
	recorded, changed, err := r.record(ctx, rollout, status, d.Overdue || d.MetadataResolved)
	more := false
	if pass.Stored(changed); err == nil {
		// 5. Emit events, notifications and metrics, only of what is stored.
		r.emit(ctx, recorded, s, d, status, changed)

		// 6. Act: make the targets and HealthChecks follow what is recorded.
		more, err = r.follow(ctx, recorded, s, d, changed)
	}

	// 7. Come back when time alone may change something.
	return r.comeBack(pass, recorded, s, d, more, err)
}

// lostRace reports whether another client has changed what the pass depends on.
func lostRace(err error) bool { return apierrors.IsConflict(err) || errors.Is(err, errStale) }

// giveUp ends a pass. A lost race is not an error: the next pass reads what was written. What
// was not seen yet is none either.
func giveUp(pass *announce.Pass, err error) (ctrl.Result, error) {
	if later, ok := errors.AsType[postponed](err); ok {
		pass.Ends(later.because)
		return ctrl.Result{RequeueAfter: later.atMost}, nil
	}
	if !lostRace(err) {
		return ctrl.Result{}, err
	}
	pass.Ends(errStale.Error())
	return ctrl.Result{RequeueAfter: recheck.AfterConflict}, nil
}

// emit announces and counts what was stored.
func (r *Reconciler) emit(ctx context.Context, recorded *v1alpha1.Rollout, s gather.Snapshot, d promotion.Decision, status *v1alpha1.RolloutStatus, changed bool) {
	before := r.memory.of(client.ObjectKeyFromObject(recorded)).replaceCulprits(culpritsOf(s.Input))
	if changed {
		r.announce(ctx, recorded, s, transitions(recorded, s.Input, d, before))
	}
	r.Metrics.Observe(counted(s.Input, recorded, status, d, changed))
}

// follow carries out the recorded decision. The release reaches its targets even if an
// annotation cannot be removed. It reports whether something is left for the next pass.
func (r *Reconciler) follow(ctx context.Context, recorded *v1alpha1.Rollout, s gather.Snapshot, d promotion.Decision, confirmed bool) (more bool, err error) {
	recorded, unconsumed := r.consume(ctx, recorded, d)
	more, err = r.act(ctx, recorded, s, d, confirmed)
	err = errors.Join(err, r.mirrorHolds(ctx, recorded, s, d))
	err = errors.Join(unconsumed, err, r.reportRejections(ctx, recorded, s, d, err))
	r.reportFailures(ctx, recorded, s.Input)
	if confirmed && d.Action.Promotes() {
		r.expendApprovals(ctx, recorded, s)
	}
	return more && err == nil, err // after an error the next pass waits
}

// comeBack ends a pass. A pass that has failed is repeated, after the back-off of its error
// or when time alone may change something, whatever is earlier.
func (r *Reconciler) comeBack(pass *announce.Pass, recorded *v1alpha1.Rollout, s gather.Snapshot, d promotion.Decision, more bool, err error) (ctrl.Result, error) {
	if lostRace(err) {
		return giveUp(pass, err)
	}
	key := client.ObjectKeyFromObject(recorded)
	m := r.memory.of(key)
	at := verdict.Earlier(m.nextConflict(recorded.Current(), s.Found), m.reported.next(s.Now))
	next := requeue(s.Now, verdict.Earlier(d.RecheckAt, at), r.Now(), more)
	if err = errors.Join(err, s.Err); err != nil {
		if next.RequeueAfter > 0 {
			r.wakeups.WakeAfter(key, next.RequeueAfter)
		}
		return ctrl.Result{}, err
	}
	return next, nil
}

// requeue schedules a pass for when time alone may change something; zero means never. If
// there is more to do, it comes at once.
func requeue(began, at, now time.Time, more bool) ctrl.Result {
	switch {
	case more:
		return ctrl.Result{RequeueAfter: recheck.AtOnce}
	case at.IsZero():
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: recheck.In(at, began, now)}
}
