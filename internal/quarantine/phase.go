// SPDX-License-Identifier: Apache-2.0

// Package quarantine decides what is known of a release that has failed: whether it is
// held, until when, and what each failure and its outcome change. It is pure: objects and
// the time are parameters.
//
//	phase.go    what is known of the release, and whether it is held
//	incident.go failures, and their outcomes
//	match.go    which releases a quarantine is about
//	managed.go  what the controller has created, and what both kinds have in common
//	scope.go    whose quarantines count
package quarantine

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// longestSuspicion is the longest time for which a release is held on suspicion.
const longestSuspicion = 168 * time.Hour

// KeptFor is how long a quarantine that holds nothing any more is kept for users to see.
const KeptFor = 7 * 24 * time.Hour

// Phase returns what is known of the release at a time. It depends on the object alone.
func Phase(spec *v1alpha1.ReleaseQuarantineSpec, status *v1alpha1.ReleaseQuarantineStatus, now time.Time) v1alpha1.QuarantinePhase {
	until := Until(spec, status)
	switch {
	case spec.Lifted:
		return v1alpha1.QuarantineLifted
	case !until.IsZero() && !now.Before(until):
		return v1alpha1.QuarantineExpired
	}
	return found(status.Incidents)
}

// Holds reports whether the release is held in a phase.
func Holds(phase v1alpha1.QuarantinePhase) bool {
	return phase == v1alpha1.QuarantineSuspected || phase == v1alpha1.QuarantineConfirmed
}

// Until returns when a quarantine ends by itself; zero means never.
func Until(spec *v1alpha1.ReleaseQuarantineSpec, status *v1alpha1.ReleaseQuarantineStatus) time.Time {
	switch {
	case spec.Until != nil:
		return spec.Until.Time
	case status.Until != nil:
		return status.Until.Time
	}
	return time.Time{}
}

// found returns what the incidents show. The rollback is the experiment: if it restores
// the health, the release was the cause. If it does not, something else is broken, too,
// and failures of several Rollouts are no proof any more. Without incidents, a user says
// that the release is bad.
func found(incidents []v1alpha1.QuarantineIncident) v1alpha1.QuarantinePhase {
	restored, refuted := have(incidents, v1alpha1.IncidentRestored), have(incidents, v1alpha1.IncidentNotRestored)
	switch {
	case len(incidents) == 0, restored:
		return v1alpha1.QuarantineConfirmed
	case refuted && !have(incidents, v1alpha1.IncidentOpen):
		return v1alpha1.QuarantineRefuted
	case ofSeveral(incidents):
		return v1alpha1.QuarantineConfirmed
	}
	return v1alpha1.QuarantineSuspected
}

func have(incidents []v1alpha1.QuarantineIncident, outcome v1alpha1.IncidentOutcome) bool {
	return slices.ContainsFunc(incidents, func(i v1alpha1.QuarantineIncident) bool { return i.Outcome == outcome })
}

func ofSeveral(incidents []v1alpha1.QuarantineIncident) bool {
	return slices.ContainsFunc(incidents, func(i v1alpha1.QuarantineIncident) bool { return i.Rollout.UID != incidents[0].Rollout.UID })
}

// ReportedWithin is how long after its end a failure is still reported for the first time.
// A Rollout whose block quarantine is set later does not report what people have long dealt
// with.
const ReportedWithin = time.Hour

// Settle returns the status with what follows from the object at a time: the phase, and
// since when the quarantine holds nothing any more.
func Settle(spec *v1alpha1.ReleaseQuarantineSpec, status v1alpha1.ReleaseQuarantineStatus, generation int64, now time.Time) v1alpha1.ReleaseQuarantineStatus {
	next := *status.DeepCopy()
	next.Phase, next.ObservedGeneration = Phase(spec, &status, now), generation
	switch {
	case Holds(next.Phase):
		next.EndedAt = nil
	case next.EndedAt == nil:
		next.EndedAt = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	return next
}

// Next returns when time alone changes what [Settle] returns; zero means never.
func Next(spec *v1alpha1.ReleaseQuarantineSpec, status *v1alpha1.ReleaseQuarantineStatus, now time.Time) time.Time {
	if until := Until(spec, status); !spec.Lifted && until.After(now) {
		return until
	}
	return time.Time{}
}
