// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

const (
	// reportedWithin is how long after its end a failure is still reported. A Rollout whose
	// block quarantine is set later does not report what people have long dealt with.
	reportedWithin = time.Hour
	// longestIncident is how many characters of the message of a failure are reported.
	longestIncident = 256
)

// Report is a failure, or the outcome of one, that a quarantine does not show yet.
type Report struct {
	// Name of the ReleaseQuarantine, in the namespace of the Rollout.
	Name string
	// Digest of the content that failed.
	Digest string
	// Tag that it had.
	Tag string
	// Incident is the failure with its outcome as it is now.
	Incident v1alpha1.QuarantineIncident
	// Known is true if the quarantine lists the failure, with another outcome.
	Known bool
}

// Reports returns what is to be reported. It asks for the same again until the quarantines
// of the Input show it.
func Reports(in Input) []Report {
	if !in.Rollout.Spec.Quarantine.Reports() || in.Quarantines.Problem != nil {
		return nil
	}
	var all []Report
	for i := range in.Rollout.Status.History {
		if report, ok := in.reportOf(i); ok {
			all = append(all, report)
		}
	}
	return all
}

// reportOf returns what is to be reported of a history entry.
func (in Input) reportOf(i int) (Report, bool) {
	entry := &in.Rollout.Status.History[i]
	if entry.State() != v1alpha1.BakeFailed || entry.IsRollback() {
		return Report{}, false
	}
	digest := in.failedContent(i)
	name, ok := quarantine.Name(digest)
	if !ok {
		return Report{}, false
	}
	report := Report{Name: name, Digest: digest, Tag: entry.Version.Tag, Incident: in.incidentOf(i)}
	if listed := in.listed(name, report.Incident); listed != nil {
		report.Known = true
		return report, quarantine.Changes(*listed, report.Incident)
	}
	return report, entry.Quarantine == "" && in.isFresh(i)
}

// isFresh reports whether a failure is still to be reported for the first time: its release
// is current, or was replaced by a rollback only, and it says something about the release.
func (in Input) isFresh(i int) bool {
	history := in.Rollout.Status.History
	entry := &history[i]
	cause := CauseOf(entry)
	recent := entry.BakeEndTime != nil && in.Now.Sub(entry.BakeEndTime.Time) <= reportedWithin
	near := i == 0 || i == 1 && history[0].IsRollback()
	return recent && near && (cause == v1alpha1.CauseHealthCheckFailed || cause == v1alpha1.CauseTargetUnhealthy)
}

// failedContent returns the digest of the content of a failed entry; empty if it is not
// known.
func (in Input) failedContent(i int) string {
	version := in.Rollout.Status.History[i].Version
	if digest := orEmpty(version.Digest); digest != "" || i > 0 {
		return cmp.Or(digest, orEmpty(known(in.Rollout.Status.AvailableReleases, version.Tag).Digest))
	}
	return cmp.Or(in.content(), orEmpty(known(in.Rollout.Status.AvailableReleases, version.Tag).Digest))
}

func (in Input) incidentOf(i int) v1alpha1.QuarantineIncident {
	entry := &in.Rollout.Status.History[i]
	incident := v1alpha1.QuarantineIncident{
		Rollout: v1alpha1.IncidentRollout{Name: in.Rollout.Name, UID: in.Rollout.UID},
		EntryID: idOrZero(entry), LastRetryTimestamp: entry.LastRetryTimestamp,
		Cause: CauseOf(entry),
	}
	if entry.BakeEndTime != nil {
		incident.Time = *entry.BakeEndTime
	}
	if entry.BakeStatusMessage != nil {
		incident.Message = truncate.Text(*entry.BakeStatusMessage, longestIncident-1)
	}
	incident.Outcome, incident.RolledBackTo = in.outcomeOf(i)
	return incident
}

// outcomeOf returns what followed a failure.
func (in Input) outcomeOf(i int) (outcome v1alpha1.IncidentOutcome, rolledBackTo string) {
	history := in.Rollout.Status.History
	if i == 0 {
		if in.Rollout.Spec.RollsBack() && history[0].RollbackDue != nil {
			return v1alpha1.IncidentOpen, ""
		}
		return v1alpha1.IncidentUnknown, ""
	}
	next := &history[i-1]
	switch {
	case !next.IsRollback():
		return v1alpha1.IncidentUnknown, ""
	case next.State() == v1alpha1.BakeSucceeded:
		return v1alpha1.IncidentRestored, next.Version.Tag
	case i > 1:
		return v1alpha1.IncidentUnknown, next.Version.Tag
	case isOverdue(in):
		return v1alpha1.IncidentNotRestored, next.Version.Tag
	}
	return v1alpha1.IncidentOpen, next.Version.Tag
}

func idOrZero(entry *v1alpha1.DeploymentHistoryEntry) int64 {
	if entry.ID == nil {
		return 0
	}
	return *entry.ID
}

// listed returns the incident of a failure as its quarantine shows it; nil if it does not.
func (in Input) listed(name string, of v1alpha1.QuarantineIncident) *v1alpha1.QuarantineIncident {
	for i := range in.Quarantines.All {
		if q := &in.Quarantines.All[i]; q.Name == ownQuarantine(name) {
			return quarantine.Find(q.Status.Incidents, of)
		}
	}
	return nil
}

// recordReported writes the names of the quarantines that show the failures of the history.
func recordReported(in Input, history []v1alpha1.DeploymentHistoryEntry) {
	for i := range in.Rollout.Status.History {
		entry := &in.Rollout.Status.History[i]
		if entry.State() != v1alpha1.BakeFailed || entry.Quarantine != "" {
			continue
		}
		name, ok := quarantine.Name(in.failedContent(i))
		if ok && in.listed(name, in.incidentOf(i)) != nil {
			history[i].Quarantine = name
		}
	}
}
