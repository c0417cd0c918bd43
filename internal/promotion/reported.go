// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// longestIncident is how many characters of the message of a failure are reported.
const longestIncident = 256

// Report is a failure, or the outcome of one, that a quarantine does not show yet.
type Report struct {
	// Name of the ReleaseQuarantine, in the namespace of the Rollout.
	Name string
	// Digest of the content that failed.
	Digest string
	// Image whose tag it was; empty if that is not known.
	Image string
	// Tag that it had.
	Tag string
	// Incident is the failure with its outcome as it is now.
	Incident v1alpha1.QuarantineIncident
	// Known is true if the quarantine lists the failure, with another outcome.
	Known bool
}

// Reports returns what is to be reported. It asks for the same again until the quarantines
// of the Input show it, or the history names the quarantine.
func Reports(in Input) []Report {
	if !in.Rollout.Spec.Quarantine.Reports() || in.Quarantines.Problem != nil {
		return nil
	}
	var all []Report
	listed := in.listings()
	for i := range in.Rollout.Status.History {
		if report, ok := in.reportOf(i, listed); ok {
			all = append(all, report)
		}
	}
	return append(all, in.abandoned(listed)...)
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
	return entry.State() == v1alpha1.BakeFailed && idOrZero(entry) == r.Incident.EntryID &&
		entry.LastRetryTimestamp.Equal(r.Incident.LastRetryTimestamp)
}

// reportOf returns what is to be reported of a history entry.
func (in Input) reportOf(i int, listed listings) (Report, bool) {
	entry := &in.Rollout.Status.History[i]
	if entry.State() != v1alpha1.BakeFailed || entry.IsRollback() {
		return Report{}, false
	}
	incident := in.incidentOf(i)
	if at := listed.find(incident); at != nil {
		return at.report(entry.Version.Tag, incident), quarantine.Changes(*at.incident, incident)
	}
	digest := in.failedContent(i)
	name, ok := quarantine.Name(digest)
	ok = ok && entry.Quarantine == "" && in.isFresh(i) && in.takesFailures(name, digest)
	return Report{Name: name, Digest: digest, Image: cmp.Or(entry.Image, in.Policy.Image), Tag: entry.Version.Tag, Incident: incident}, ok
}

// abandoned returns the failures that quarantines list as open, and that the history does
// not have any more: they were retried, or cut. Nobody else says what followed them, and
// while a failure is open, the outcomes of others refute nothing.
func (in Input) abandoned(listed listings) []Report {
	var all []Report
	for _, at := range listed {
		if at.incident.Outcome != v1alpha1.IncidentOpen || in.mayHave(*at.incident) {
			continue
		}
		incident, tag := *at.incident, ""
		if incident.Outcome = v1alpha1.IncidentUnknown; len(at.quarantine.Spec.Tags) > 0 {
			tag = at.quarantine.Spec.Tags[0]
		}
		all = append(all, at.report(tag, incident))
	}
	return all
}

// mayHave reports whether the history has a failure, or may have it soon: the Rollout may
// be an older copy than the quarantine, from before the promotion failed or was recorded.
func (in Input) mayHave(incident v1alpha1.QuarantineIncident) bool {
	history := in.Rollout.Status.History
	if len(history) == 0 || incident.EntryID > idOrZero(&history[0]) {
		return true
	}
	return slices.ContainsFunc(history, func(e v1alpha1.DeploymentHistoryEntry) bool {
		return (e.State() == v1alpha1.BakeFailed || e.State().Running()) && quarantine.Same(in.failure(&e), incident)
	})
}

// takesFailures reports whether failures are reported to the quarantine of that name. If
// there is none, it is created. If it is about other content, the report fails, and says so.
func (in Input) takesFailures(name, digest string) bool {
	q := in.quarantineOf(name, digest)
	return q == nil || quarantine.TakesFailures(&q.Spec, q.Managed)
}

// quarantineOf returns the quarantine of the namespace with that name; nil if there is none,
// or if it is about other content.
func (in Input) quarantineOf(name, digest string) *Quarantine {
	own := ownQuarantine(name)
	for i := range in.Quarantines.All {
		if q := &in.Quarantines.All[i]; q.Name == own && q.Spec.Digest == digest {
			return q
		}
	}
	return nil
}

// isFresh reports whether a failure is still to be reported for the first time: its release
// is current, or was replaced by a rollback only, and it says something about the release.
func (in Input) isFresh(i int) bool {
	history := in.Rollout.Status.History
	entry := &history[i]
	cause := causeOf(entry)
	recent := entry.BakeEndTime != nil && in.Now.Sub(entry.BakeEndTime.Time) <= quarantine.ReportedWithin
	near := i == 0 || i == 1 && history[0].IsRollback()
	return recent && near && (cause == v1alpha1.CauseHealthCheckFailed || cause == v1alpha1.CauseTargetUnhealthy)
}

// failedContent returns the digest of the content of a failed entry; empty if it is not
// known.
func (in Input) failedContent(i int) string {
	version := in.Rollout.Status.History[i].Version
	if in.Policy.isOfAnother(&in.Rollout.Status.History[i]) {
		return orEmpty(version.Digest) // the tag is other content now
	}
	if digest := orEmpty(version.Digest); digest != "" || i > 0 {
		return cmp.Or(digest, orEmpty(known(in.Rollout.Status.AvailableReleases, version.Tag).Digest))
	}
	return cmp.Or(in.content(), orEmpty(known(in.Rollout.Status.AvailableReleases, version.Tag).Digest))
}

// failure returns what identifies a failure.
func (in Input) failure(entry *v1alpha1.DeploymentHistoryEntry) v1alpha1.QuarantineIncident {
	return v1alpha1.QuarantineIncident{
		Rollout: v1alpha1.IncidentRollout{Name: in.Rollout.Name, UID: in.Rollout.UID},
		EntryID: idOrZero(entry), LastRetryTimestamp: entry.LastRetryTimestamp,
	}
}

func (in Input) incidentOf(i int) v1alpha1.QuarantineIncident {
	entry := &in.Rollout.Status.History[i]
	incident := in.failure(entry)
	incident.Cause = causeOf(entry)
	if entry.BakeEndTime != nil {
		incident.Time = *entry.BakeEndTime
	}
	if entry.BakeStatusMessage != nil {
		incident.Message = truncate.Line(*entry.BakeStatusMessage, longestIncident)
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

// listing is a failure of this Rollout that a quarantine lists.
type listing struct {
	name       string
	quarantine *Quarantine
	incident   *v1alpha1.QuarantineIncident
}

type listings []listing

// listings returns the failures of this Rollout that the quarantines of its namespace list.
func (in Input) listings() listings {
	var all listings
	for i := range in.Quarantines.All {
		q := &in.Quarantines.All[i]
		name, own := q.OwnName()
		if !own {
			continue
		}
		for j := range q.Status.Incidents {
			if incident := &q.Status.Incidents[j]; incident.Rollout.UID == in.Rollout.UID {
				all = append(all, listing{name, q, incident})
			}
		}
	}
	return all
}

// find returns where a failure is listed; nil if it is not.
func (l listings) find(failure v1alpha1.QuarantineIncident) *listing {
	for i := range l {
		if quarantine.Same(*l[i].incident, failure) {
			return &l[i]
		}
	}
	return nil
}

func (l *listing) report(tag string, incident v1alpha1.QuarantineIncident) Report {
	return Report{Name: l.name, Digest: l.quarantine.Spec.Digest, Tag: tag, Incident: incident, Known: true}
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

// recordReported writes the names of the quarantines that show, or count, the failures of the
// history.
func recordReported(in Input, history []v1alpha1.DeploymentHistoryEntry) {
	if len(in.Quarantines.All) == 0 {
		return
	}
	listed := in.listings()
	for i := range in.Rollout.Status.History {
		if entry := &in.Rollout.Status.History[i]; entry.State() == v1alpha1.BakeFailed && entry.Quarantine == "" {
			history[i].Quarantine = in.reportedTo(i, listed)
		}
	}
}

// reportedTo returns the name of the quarantine that a failure was reported to; empty if
// there is none.
func (in Input) reportedTo(i int, listed listings) string {
	failure := in.failure(&in.Rollout.Status.History[i])
	if at := listed.find(failure); at != nil {
		return at.name
	}
	digest := in.failedContent(i)
	name, ok := quarantine.Name(digest)
	if q := in.quarantineOf(name, digest); !ok || q == nil || !quarantine.Counts(&q.Status, failure) {
		return ""
	}
	return name
}
