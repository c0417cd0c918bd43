// SPDX-License-Identifier: Apache-2.0

package quarantine

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// mostFailures is how many failures a quarantine lists.
const mostFailures = 10

// latest is the last time that the API can show.
var latest = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)

// Report returns the status after a failure, and whether that changes it. It holds the
// release until holdFor of the Rollout after the failure. It never ends earlier because of a
// failure: Rollouts may have different settings.
//
// Only what is listed is known to be reported. If a controller dies before it notes in the
// history that a failure was reported, and the failure is not listed any more, it is reported
// again. That lists it once more, and the time ends no later.
func Report(status v1alpha1.ReleaseQuarantineStatus, failure v1alpha1.ReleaseFailure, by *v1alpha1.RolloutQuarantine) (v1alpha1.ReleaseQuarantineStatus, bool) {
	if Lists(&status, failure) {
		return status, false
	}
	next := *status.DeepCopy()
	next.Failures = slices.Insert(next.Failures, 0, failure)
	next.Failures = next.Failures[:min(len(next.Failures), mostFailures)]
	until := failure.Time.Add(by.GetHoldFor())
	if until.After(latest) {
		until = latest
	}
	if next.Until == nil || until.After(next.Until.Time) {
		next.Until = &metav1.Time{Time: until}
	}
	return next, true
}

// Lists reports whether a quarantine lists a failure.
func Lists(status *v1alpha1.ReleaseQuarantineStatus, failure v1alpha1.ReleaseFailure) bool {
	return slices.ContainsFunc(status.Failures, func(f v1alpha1.ReleaseFailure) bool { return Same(f, failure) })
}

// Same reports whether two failures are the same: of one Rollout, one history entry, and one
// try.
func Same(a, b v1alpha1.ReleaseFailure) bool {
	return a.EntryID == b.EntryID && a.Rollout.UID == b.Rollout.UID && a.LastRetryTimestamp.Equal(b.LastRetryTimestamp)
}
