// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

// DueReport returns the failure that is to be reported; nil if there is none. It returns the
// same again until a quarantine of the Input lists it, or the history names the quarantine.
func DueReport(in Input) *quarantined.Report {
	if !in.Rollout.Spec.Quarantine.Reports() || in.Quarantines.Problem != nil {
		return nil
	}
	i := lastForward(in.Rollout)
	if i < 0 || !isToBeReported(in.Now, in.Rollout, i) {
		return nil
	}
	entry, digest := &in.Rollout.Status.History[i], in.failedContent(i)
	name, ok := quarantine.Name(digest)
	failure := failureOf(in.Rollout, entry)
	if !ok || in.Quarantines.ListedIn(failure) != "" || !in.Quarantines.TakeFailures(name, digest) {
		return nil
	}
	return &quarantined.Report{Name: name, Digest: digest, Image: cmp.Or(entry.Image, in.Policy.Image), Tag: entry.Version.Tag, Failure: quarantined.Described(failure, entry, causeOf(entry))}
}

// lastForward returns the index of the newest history entry, or of the one that a rollback
// has replaced; -1 if there is none.
func lastForward(rollout *v1alpha1.Rollout) int {
	history := rollout.Status.History
	if len(history) > 1 && history[0].IsRollback() {
		return 1
	}
	return min(len(history), 1) - 1
}

// isToBeReported reports whether an entry is a failure that is still to be reported, and that
// says something about the release. A deadline alone does not: something else may have kept
// the release from running.
func isToBeReported(now time.Time, rollout *v1alpha1.Rollout, i int) bool {
	entry := &rollout.Status.History[i]
	if entry.State() != v1alpha1.BakeFailed || entry.IsRollback() || entry.Quarantine != "" || entry.BakeEndTime == nil {
		return false
	}
	cause := causeOf(entry)
	return now.Sub(entry.BakeEndTime.Time) <= quarantine.ReportedWithin &&
		(cause == v1alpha1.CauseHealthCheckFailed || cause == v1alpha1.CauseTargetUnhealthy)
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
	return cmp.Or(in.Content().Digest(), releases.OrEmpty(releases.Known(in.Rollout.Status.AvailableReleases, version.Tag).Digest))
}

// failureOf returns what identifies the failure of a history entry.
func failureOf(rollout *v1alpha1.Rollout, entry *v1alpha1.DeploymentHistoryEntry) v1alpha1.ReleaseFailure {
	return v1alpha1.ReleaseFailure{
		Rollout: v1alpha1.ReportingRollout{Name: rollout.Name, UID: rollout.UID},
		EntryID: entry.IDOrZero(), LastRetryTimestamp: entry.LastRetryTimestamp,
	}
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
func recordReported(rollout *v1alpha1.Rollout, quarantines quarantined.Quarantines, history []v1alpha1.DeploymentHistoryEntry) {
	i := lastForward(rollout)
	if i < 0 {
		return
	}
	if entry := &rollout.Status.History[i]; entry.State() == v1alpha1.BakeFailed && entry.Quarantine == "" {
		history[i].Quarantine = quarantines.ListedIn(failureOf(rollout, entry))
	}
}
