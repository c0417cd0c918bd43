// SPDX-License-Identifier: Apache-2.0

package health

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// MaxMessageLength bounds the message of a HealthCheck, in characters.
const MaxMessageLength = 1024

// Next returns the status that follows from a result. It also reports whether that status
// differs from the present one and so has to be written.
//
// lastChangeTime changes only with status. Next never removes lastErrorTime: only a reset
// does, and that is how failures of an old release are distinguished from those of a new
// one.
func Next(old v1alpha1.HealthCheckStatus, result Result, now time.Time) (v1alpha1.HealthCheckStatus, bool) {
	if old.Status == v1alpha1.HealthStatusHealthy && result.Status == v1alpha1.HealthStatusHealthy {
		return old, false // the number of healthy objects is not worth a write
	}
	message := bounded(result.Message)
	next := v1alpha1.HealthCheckStatus{
		Status:         result.Status,
		Message:        &message,
		LastChangeTime: old.LastChangeTime,
		LastErrorTime:  lastErrorTime(old, result, message, now),

		LastHandledReconcileAt: old.LastHandledReconcileAt,
	}
	next.Reason = result.Reason
	if next.Status != old.Status {
		next.LastChangeTime = InSeconds(now)
	}
	return next, !equality.Semantic.DeepEqual(old, next)
}

// SameButForMessage reports whether two statuses differ at most in the message, which no
// decision depends on.
func SameButForMessage(a, b v1alpha1.HealthCheckStatus) bool {
	a.Message, b.Message = nil, nil
	return equality.Semantic.DeepEqual(a, b)
}

// lastErrorTime returns a time that moves only forward: when the newer of two failures
// ends, the remaining older one is not a new failure.
func lastErrorTime(old v1alpha1.HealthCheckStatus, result Result, message string, now time.Time) *metav1.Time {
	if result.Status != v1alpha1.HealthStatusUnhealthy {
		return old.LastErrorTime
	}
	since := result.ErrorTime
	if since.IsZero() {
		if isSameFailure(old, message) {
			return old.LastErrorTime
		}
		since = now
	}
	at := InSeconds(since)
	if old.LastErrorTime != nil && !at.After(old.LastErrorTime.Time) {
		return old.LastErrorTime
	}
	return at
}

// isSameFailure reports whether a failure without a time has been recorded already. Its
// time must not change with each evaluation.
func isSameFailure(old v1alpha1.HealthCheckStatus, message string) bool {
	return old.Status == v1alpha1.HealthStatusUnhealthy && old.LastErrorTime != nil &&
		old.Message != nil && *old.Message == message
}

// InSeconds returns the time as it will be read back from the API server.
func InSeconds(t time.Time) *metav1.Time {
	return &metav1.Time{Time: t.Truncate(time.Second)}
}

func bounded(message string) string { return truncate.Text(message, MaxMessageLength) }
