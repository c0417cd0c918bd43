// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
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

// DueReport returns the failure that is to be reported; nil if there is none. It returns the
// same again until a quarantine of the Input lists it, or the history names the quarantine.
func DueReport(in Input) *Report {
	if !in.Rollout.Spec.Quarantine.Reports() || in.Quarantines.Problem != nil {
		return nil
	}
	i := in.lastForward()
	if i < 0 || !in.isToBeReported(i) {
		return nil
	}
	entry, digest := &in.Rollout.Status.History[i], in.failedContent(i)
	name, ok := quarantine.Name(digest)
	failure := in.failure(entry)
	if !ok || in.listedIn(failure) != "" || !in.takesFailures(name, digest) {
		return nil
	}
	return &Report{Name: name, Digest: digest, Image: cmp.Or(entry.Image, in.Policy.Image), Tag: entry.Version.Tag, Failure: described(failure, entry)}
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
	return entry.State() == v1alpha1.BakeFailed && idOrZero(entry) == r.Failure.EntryID &&
		entry.LastRetryTimestamp.Equal(r.Failure.LastRetryTimestamp)
}

// lastForward returns the index of the newest history entry, or of the one that a rollback
// has replaced; -1 if there is none.
func (in Input) lastForward() int {
	history := in.Rollout.Status.History
	if len(history) > 1 && history[0].IsRollback() {
		return 1
	}
	return min(len(history), 1) - 1
}

// isToBeReported reports whether an entry is a failure that is still to be reported, and that
// says something about the release. A deadline alone does not: something else may have kept
// the release from running.
func (in Input) isToBeReported(i int) bool {
	entry := &in.Rollout.Status.History[i]
	if entry.State() != v1alpha1.BakeFailed || entry.IsRollback() || entry.Quarantine != "" || entry.BakeEndTime == nil {
		return false
	}
	cause := causeOf(entry)
	return in.Now.Sub(entry.BakeEndTime.Time) <= quarantine.ReportedWithin &&
		(cause == v1alpha1.CauseHealthCheckFailed || cause == v1alpha1.CauseTargetUnhealthy)
}

// takesFailures reports whether failures are reported to the quarantine of that name. If
// there is none, it is created. If it is about other content, the report fails, and says so.
func (in Input) takesFailures(name, digest string) bool {
	own := ownQuarantine(name)
	for i := range in.Quarantines.All {
		if q := &in.Quarantines.All[i]; q.Name == own && q.Spec.Digest == digest {
			return quarantine.TakesFailures(&q.Spec, q.Managed)
		}
	}
	return true
}

// failedContent returns the digest of the content of a failed entry; empty if it is not
// known.
func (in Input) failedContent(i int) string {
	version := in.Rollout.Status.History[i].Version
	if in.Policy.IsOfAnother(&in.Rollout.Status.History[i]) {
		return releases.OrEmpty(version.Digest) // the tag is other content now
	}
	if digest := releases.OrEmpty(version.Digest); digest != "" || i > 0 {
		return cmp.Or(digest, releases.OrEmpty(releases.Known(in.Rollout.Status.AvailableReleases, version.Tag).Digest))
	}
	return cmp.Or(in.content(), releases.OrEmpty(releases.Known(in.Rollout.Status.AvailableReleases, version.Tag).Digest))
}

// failure returns what identifies the failure of a history entry.
func (in Input) failure(entry *v1alpha1.DeploymentHistoryEntry) v1alpha1.ReleaseFailure {
	return v1alpha1.ReleaseFailure{
		Rollout: v1alpha1.ReportingRollout{Name: in.Rollout.Name, UID: in.Rollout.UID},
		EntryID: idOrZero(entry), LastRetryTimestamp: entry.LastRetryTimestamp,
	}
}

// described returns a failure with how the history entry failed.
func described(failure v1alpha1.ReleaseFailure, entry *v1alpha1.DeploymentHistoryEntry) v1alpha1.ReleaseFailure {
	failure.Cause, failure.Time = causeOf(entry), *entry.BakeEndTime
	if entry.BakeStatusMessage != nil {
		failure.Message = truncate.Line(*entry.BakeStatusMessage, longestFailure)
	}
	return failure
}

func idOrZero(entry *v1alpha1.DeploymentHistoryEntry) int64 {
	if entry.ID == nil {
		return 0
	}
	return *entry.ID
}

// listedIn returns the name of the quarantine of the namespace that lists a failure; empty if
// none does.
func (in Input) listedIn(failure v1alpha1.ReleaseFailure) string {
	for i := range in.Quarantines.All {
		q := &in.Quarantines.All[i]
		if name, own := q.OwnName(); own && quarantine.Lists(&q.Status, failure) {
			return name
		}
	}
	return ""
}

// recordContent writes which content has failed: after a rollback, no target shows it.
func recordContent(in Input, history []v1alpha1.DeploymentHistoryEntry) {
	current := in.Rollout.Current()
	if !in.Rollout.Spec.Quarantine.Reports() || current.State() != v1alpha1.BakeFailed || current.Version.Digest != nil {
		return
	}
	if digest := in.failedContent(0); digest != "" {
		history[0].Version.Digest = &digest
	}
}

// recordReported writes the name of the quarantine that lists the failure.
func recordReported(in Input, history []v1alpha1.DeploymentHistoryEntry) {
	i := in.lastForward()
	if i < 0 {
		return
	}
	if entry := &in.Rollout.Status.History[i]; entry.State() == v1alpha1.BakeFailed && entry.Quarantine == "" {
		history[i].Quarantine = in.listedIn(in.failure(entry))
	}
}
