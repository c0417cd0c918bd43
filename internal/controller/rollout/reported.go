// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

const (
	// firstRetry and lastRetry are the shortest and the longest time until a report that
	// failed is tried again. It doubles each time.
	firstRetry = 5 * time.Second
	lastRetry  = 5 * time.Minute
)

// reportedFailures remembers, per Rollout, which failure was written to a quarantine and is
// not in the history as reported yet, and when a report that failed is tried again. A restart
// loses it: then the quarantine shows what was reported. The zero value remembers nothing.
type reportedFailures struct {
	mu  sync.Mutex
	all map[types.NamespacedName]*reportedOf
}

type reportedOf struct {
	// written is nil if the history names each quarantine.
	written *promotion.Report
	// problem is what was announced last.
	problem string
	tries   int
	again   time.Time
}

func (r *reportedFailures) change(rollout types.NamespacedName, change func(*reportedOf)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.all[rollout]
	if of == nil {
		of = &reportedOf{}
	}
	change(of)
	if of.written == nil && of.tries == 0 {
		delete(r.all, rollout)
		return
	}
	if r.all == nil {
		r.all = map[types.NamespacedName]*reportedOf{}
	}
	r.all[rollout] = of
}

// acknowledged returns the Rollout with the name of the quarantine to which its failure was
// written. It forgets that once the history has it.
func (r *reportedFailures) acknowledged(key types.NamespacedName, rollout *v1alpha1.Rollout) *v1alpha1.Rollout {
	if !r.knows(key) {
		return rollout
	}
	next := *rollout
	next.Status.History = slices.Clone(rollout.Status.History)
	r.change(key, func(of *reportedOf) {
		if of.written != nil && isUnrecorded(rollout, *of.written) {
			promotion.Acknowledge(next.Status.History, *of.written)
			return
		}
		of.written = nil
	})
	return &next
}

func (r *reportedFailures) knows(rollout types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[rollout] != nil
}

// isUnrecorded reports whether the history has the failure, but not that it was reported.
func isUnrecorded(rollout *v1alpha1.Rollout, report promotion.Report) bool {
	return report.Failure.Rollout.UID == rollout.UID && slices.ContainsFunc(rollout.Status.History, func(e v1alpha1.DeploymentHistoryEntry) bool {
		return e.Quarantine == "" && report.IsOf(&e)
	})
}

func (r *reportedFailures) wrote(rollout types.NamespacedName, report promotion.Report) {
	r.change(rollout, func(of *reportedOf) { of.written = &report })
}

// succeeded forgets a problem.
func (r *reportedFailures) succeeded(rollout types.NamespacedName) {
	if r.knows(rollout) {
		r.change(rollout, func(of *reportedOf) { of.problem, of.tries, of.again = "", 0, time.Time{} })
	}
}

// failed decides when to try again, and returns whether the problem is new.
func (r *reportedFailures) failed(rollout types.NamespacedName, problem string, now time.Time) (isNew bool) {
	r.change(rollout, func(of *reportedOf) {
		of.again = now.Add(min(firstRetry<<min(of.tries, 10), lastRetry))
		of.tries++
		isNew, of.problem = of.problem != problem, problem
	})
	return isNew
}

// next returns when a report is to be tried again after a time; zero if none is, or if it may
// be tried now.
func (r *reportedFailures) next(rollout types.NamespacedName, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of := r.all[rollout]; of != nil && of.again.After(now) {
		return of.again
	}
	return time.Time{}
}

func (r *reportedFailures) forget(rollout types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, rollout)
}

// noteReport notes how a report has ended. What a user must correct is
// announced once. Other errors are only in the log, and go away by themselves.
func (r *Reconciler) noteReport(ctx context.Context, rollout *v1alpha1.Rollout, err error) {
	key := client.ObjectKeyFromObject(rollout)
	if err == nil {
		r.reported.succeeded(key)
		return
	}
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	isNew := r.reported.failed(key, text, r.Now())
	switch {
	case !isToBeCorrected(err):
		ctrl.LoggerFrom(ctx).Error(announce.Shorten(err), "a failure is not reported yet, and is tried again")
	case isNew:
		announce.Event(ctx, r.Events, rollout, corev1.EventTypeWarning, v1alpha1.QuarantineNotWrittenReason, text)
	}
}

// isToBeCorrected reports whether waiting does not help.
func isToBeCorrected(err error) bool {
	return errors.Is(err, errOtherContent) || unreadable.Because(err) != nil || isRejectedPermanently(err) ||
		apierrors.IsBadRequest(err) || apierrors.IsNotFound(err)
}
