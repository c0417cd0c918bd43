// SPDX-License-Identifier: Apache-2.0

package quarantine

import (
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// mostIncidents is how many incidents a quarantine lists.
const mostIncidents = 10

// latest is the last time that the API can show.
var latest = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)

// Report returns the status after a failure, and whether that changes it. Each failure
// counts once: it is identified by the Rollout, the id of its entry, and the last retry.
// The failure is listed afterwards, whatever had to be dropped for it.
func Report(status v1alpha1.ReleaseQuarantineStatus, failure v1alpha1.QuarantineIncident, by *v1alpha1.RolloutQuarantine) (v1alpha1.ReleaseQuarantineStatus, bool) {
	if Counts(&status, failure) {
		return status, false
	}
	next := *status.DeepCopy()
	next.Counted = counted(next.Counted, failure)
	if next.Strikes = max(next.Strikes, 0); next.Strikes < math.MaxInt32 {
		next.Strikes++
	}
	next.Incidents = listed(next.Incidents, failure)
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
	case v1alpha1.IncidentRestored, v1alpha1.IncidentUnknown:
	}
	return false
}

func indexOf(incidents []v1alpha1.QuarantineIncident, failure v1alpha1.QuarantineIncident) int {
	return slices.IndexFunc(incidents, func(i v1alpha1.QuarantineIncident) bool {
		return Same(i, failure)
	})
}

// listed returns incidents with one more, newest first, and no more than a quarantine lists.
// Those that say nothing are dropped first. As long as something else can be dropped, one
// that proves the release bad stays.
func listed(incidents []v1alpha1.QuarantineIncident, added v1alpha1.QuarantineIncident) []v1alpha1.QuarantineIncident {
	newestFirst := func(a, b v1alpha1.QuarantineIncident) int { return b.Time.Compare(a.Time.Time) }
	slices.SortStableFunc(incidents, newestFirst)
	for len(incidents) >= mostIncidents {
		i := leastUseful(incidents)
		incidents = slices.Delete(incidents, i, i+1)
	}
	incidents = slices.Insert(incidents, 0, added)
	slices.SortStableFunc(incidents, newestFirst)
	return incidents
}

// leastUseful returns the index of the incident to drop: the oldest that is Unknown, or
// else the oldest that is not Restored, or else the oldest.
func leastUseful(incidents []v1alpha1.QuarantineIncident) int {
	for _, useless := range []func(v1alpha1.IncidentOutcome) bool{saysNothing, provesNothing} {
		for i := range slices.Backward(incidents) {
			if useless(incidents[i].Outcome) {
				return i
			}
		}
	}
	return len(incidents) - 1
}

func saysNothing(outcome v1alpha1.IncidentOutcome) bool {
	return outcome == v1alpha1.IncidentUnknown
}

func provesNothing(outcome v1alpha1.IncidentOutcome) bool {
	return outcome != v1alpha1.IncidentRestored
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
	until := last.Add(suspicion(by.GetSuspectFor(), status.Strikes))
	if found(status.Incidents) == v1alpha1.QuarantineConfirmed {
		until = last.Add(by.GetConfirmFor())
	}
	if until.After(latest) {
		until = latest
	}
	if status.Until == nil || until.After(status.Until.Time) {
		status.Until = &metav1.Time{Time: until}
	}
}

// suspicion returns for how long a release is suspected after so many failures.
func suspicion(once time.Duration, strikes int32) time.Duration {
	times := int64(max(strikes, 1))
	if int64(once) > int64(longestSuspicion)/times {
		return longestSuspicion
	}
	return time.Duration(int64(once) * times)
}

// Same reports whether two incidents are the same failure.
func Same(a, b v1alpha1.QuarantineIncident) bool {
	return a.EntryID == b.EntryID && a.Rollout.UID == b.Rollout.UID && a.LastRetryTimestamp.Equal(b.LastRetryTimestamp)
}

// Changes reports whether an outcome is news for an incident that is listed.
func Changes(listed, failure v1alpha1.QuarantineIncident) bool {
	return follows(listed.Outcome, failure.Outcome)
}
