// SPDX-License-Identifier: Apache-2.0

package quarantine

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// mostIncidents is how many incidents a quarantine lists.
const mostIncidents = 10

// Report returns the status after a failure, and whether that changes it. Each failure
// counts once: it is identified by the Rollout, the id of its entry, and the last retry.
func Report(status v1alpha1.ReleaseQuarantineStatus, failure v1alpha1.QuarantineIncident, by *v1alpha1.RolloutQuarantine) (v1alpha1.ReleaseQuarantineStatus, bool) {
	if indexOf(status.Incidents, failure) >= 0 {
		return status, false
	}
	next := *status.DeepCopy()
	next.Strikes++
	next.Incidents = newest(append(next.Incidents, failure))
	extend(&next, by)
	return next, true
}

// Close returns the status after the outcome of a failure is known, and whether that
// changes it. A rollback that is overdue may still succeed later.
func Close(status v1alpha1.ReleaseQuarantineStatus, failure v1alpha1.QuarantineIncident, by *v1alpha1.RolloutQuarantine) (v1alpha1.ReleaseQuarantineStatus, bool) {
	i := indexOf(status.Incidents, failure)
	if i < 0 || !follows(status.Incidents[i].Outcome, failure.Outcome) {
		return status, false
	}
	next := *status.DeepCopy()
	next.Incidents[i].Outcome = failure.Outcome
	if failure.RolledBackTo != "" {
		next.Incidents[i].RolledBackTo = failure.RolledBackTo
	}
	extend(&next, by)
	return next, true
}

// follows reports whether an outcome may follow another one.
func follows(before, after v1alpha1.IncidentOutcome) bool {
	switch before {
	case v1alpha1.IncidentOpen:
		return after != v1alpha1.IncidentOpen
	case v1alpha1.IncidentNotRestored:
		return after == v1alpha1.IncidentRestored
	}
	return false
}

func indexOf(incidents []v1alpha1.QuarantineIncident, failure v1alpha1.QuarantineIncident) int {
	return slices.IndexFunc(incidents, func(i v1alpha1.QuarantineIncident) bool {
		return i.Rollout.UID == failure.Rollout.UID && i.EntryID == failure.EntryID && i.LastRetryTimestamp.Equal(failure.LastRetryTimestamp)
	})
}

// newest sorts incidents, newest first, and keeps as many as a quarantine lists. Those
// that say nothing go first. One that proves the release bad stays.
func newest(incidents []v1alpha1.QuarantineIncident) []v1alpha1.QuarantineIncident {
	slices.SortStableFunc(incidents, func(a, b v1alpha1.QuarantineIncident) int { return b.Time.Compare(a.Time.Time) })
	for len(incidents) > mostIncidents {
		i := leastUseful(incidents)
		incidents = slices.Delete(incidents, i, i+1)
	}
	return incidents
}

// leastUseful returns the index of the incident to drop: the oldest that is Unknown, or
// else the oldest that is not Restored, or else the oldest.
func leastUseful(incidents []v1alpha1.QuarantineIncident) int {
	other := len(incidents) - 1
	for i := range slices.Backward(incidents) {
		if incidents[i].Outcome == v1alpha1.IncidentUnknown {
			return i
		}
		if incidents[other].Outcome == v1alpha1.IncidentRestored {
			other = i
		}
	}
	return other
}

// extend moves the end of the quarantine by what is known now. It never moves it forward:
// Rollouts may have different settings.
func extend(status *v1alpha1.ReleaseQuarantineStatus, by *v1alpha1.RolloutQuarantine) {
	last := time.Time{}
	for _, incident := range status.Incidents {
		if incident.Time.After(last) {
			last = incident.Time.Time
		}
	}
	until := last.Add(min(longestSuspicion, by.GetSuspectFor()*time.Duration(min(max(status.Strikes, 1), 168))))
	if found(status.Incidents) == v1alpha1.QuarantineConfirmed {
		until = last.Add(by.GetConfirmFor())
	}
	if status.Until == nil || until.After(status.Until.Time) {
		status.Until = &metav1.Time{Time: until}
	}
}

// Find returns the incident of a failure; nil if it is not listed.
func Find(incidents []v1alpha1.QuarantineIncident, failure v1alpha1.QuarantineIncident) *v1alpha1.QuarantineIncident {
	i := indexOf(incidents, failure)
	if i < 0 {
		return nil
	}
	return &incidents[i]
}

// Changes reports whether an outcome is news for an incident that is listed.
func Changes(listed, failure v1alpha1.QuarantineIncident) bool {
	return follows(listed.Outcome, failure.Outcome)
}
