// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

const (
	// firstRetry and lastRetry are the shortest and the longest time until a report that
	// failed is tried again. It doubles each time.
	firstRetry = 5 * time.Second
	lastRetry  = 5 * time.Minute
)

// reportedFailure is which failure of a Rollout was written to a quarantine and is not in the
// history as reported yet, and when a report that failed is tried again. A restart loses it:
// then the quarantine shows what was reported.
type reportedFailure struct {
	// written is nil if the history names each quarantine.
	written *quarantined.Report
	// problem is what was announced last.
	problem string
	tries   int
	again   time.Time
}

func (f *reportedFailure) isSettled() bool { return f.written == nil && f.tries == 0 }

// acknowledged returns the Rollout with the name of the quarantine to which its failure was
// written. It forgets that once the history has it.
func (f *reportedFailure) acknowledged(rollout *v1alpha1.Rollout) *v1alpha1.Rollout {
	if f.written == nil || !isUnrecorded(rollout, *f.written) {
		f.written = nil
		return rollout
	}
	next := *rollout
	next.Status.History = slices.Clone(rollout.Status.History)
	quarantined.Acknowledge(next.Status.History, *f.written)
	return &next
}

// isUnrecorded reports whether the history has the failure, but not that it was reported.
func isUnrecorded(rollout *v1alpha1.Rollout, report quarantined.Report) bool {
	return report.Failure.Rollout.UID == rollout.UID && slices.ContainsFunc(rollout.Status.History, func(e v1alpha1.DeploymentHistoryEntry) bool {
		return e.Quarantine == "" && report.IsOf(&e)
	})
}

// succeeded forgets a problem.
func (f *reportedFailure) succeeded() { *f = reportedFailure{written: f.written} }

// failed decides when to try again, and returns whether the problem is new.
func (f *reportedFailure) failed(problem string, now time.Time) (isNew bool) {
	f.again = now.Add(min(firstRetry<<min(f.tries, 10), lastRetry))
	f.tries++
	isNew, f.problem = f.problem != problem, problem
	return isNew
}

// next returns when a report is to be tried again after a time; zero if none is, or if it may
// be tried now.
func (f *reportedFailure) next(now time.Time) time.Time {
	if f.again.After(now) {
		return f.again
	}
	return time.Time{}
}

// noteReport notes how a report has ended. What a user must correct is
// announced once. Other errors are only in the log, and go away by themselves.
func (r *Reconciler) noteReport(ctx context.Context, rollout *v1alpha1.Rollout, err error) {
	reported := &r.memory.of(client.ObjectKeyFromObject(rollout)).reported
	if err == nil {
		reported.succeeded()
		return
	}
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	isNew := reported.failed(text, r.Now())
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
