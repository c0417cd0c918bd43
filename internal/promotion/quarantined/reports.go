// SPDX-License-Identifier: Apache-2.0

package quarantined

import (
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// longestFailure is how many characters of the message of a failure are reported.
const longestFailure = 256

// Report is a failure that no quarantine lists yet.
type Report struct {
	// Name of the ReleaseQuarantine, in the namespace of the Rollout.
	Name string
	// Digest of the content that failed.
	Digest string
	// Image whose tag it was; empty if that is not known.
	Image string
	// Tag that it had.
	Tag string
	// Failure is how it failed.
	Failure v1alpha1.ReleaseFailure
}

// Acknowledge writes the name of the quarantine of a report to the failure in the history,
// once the quarantine lists it. It need not wait until the Input shows that: by then, the
// failures of many other Rollouts may have taken its place there.
func Acknowledge(history []v1alpha1.DeploymentHistoryEntry, report Report) {
	for i := range history {
		if entry := &history[i]; report.IsOf(entry) {
			entry.Quarantine = report.Name
		}
	}
}

// IsOf reports whether a report is of the failure of a history entry. If a retry of the
// same promotion fails, that is another failure.
func (r Report) IsOf(entry *v1alpha1.DeploymentHistoryEntry) bool {
	return entry.State() == v1alpha1.BakeFailed && entry.IDOrZero() == r.Failure.EntryID &&
		entry.LastRetryTimestamp.Equal(r.Failure.LastRetryTimestamp)
}

// TakeFailures reports whether failures are reported to the quarantine of that name. If
// there is none, it is created. If it is about other content, the report fails, and says so.
func (qs Quarantines) TakeFailures(name, digest string) bool {
	own := ownQuarantine(name)
	for i := range qs.All {
		if q := &qs.All[i]; q.Name == own && q.Spec.Digest == digest {
			return quarantine.TakesFailures(&q.Spec, q.Managed)
		}
	}
	return true
}

// Described returns a failure with how the history entry failed.
func Described(failure v1alpha1.ReleaseFailure, entry *v1alpha1.DeploymentHistoryEntry, cause v1alpha1.FailureCause) v1alpha1.ReleaseFailure {
	failure.Cause, failure.Time = cause, *entry.BakeEndTime
	if entry.BakeStatusMessage != nil {
		failure.Message = truncate.Line(*entry.BakeStatusMessage, longestFailure)
	}
	return failure
}

// ListedIn returns the name of the quarantine of the namespace that lists a failure; empty if
// none does.
func (qs Quarantines) ListedIn(failure v1alpha1.ReleaseFailure) string {
	for i := range qs.All {
		q := &qs.All[i]
		if name, own := q.OwnName(); own && quarantine.Lists(&q.Status, failure) {
			return name
		}
	}
	return ""
}
