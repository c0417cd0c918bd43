// SPDX-License-Identifier: Apache-2.0

// Package quarantine decides whether a release that has failed, or that a user has recalled,
// is held, and until when. It is pure: objects and the time are parameters.
//
//	phase.go   whether the release is held, and until when
//	failure.go what a failure changes
//	match.go   which releases a quarantine is about
//	managed.go what the controller has created, and what both kinds have in common
//	scope.go   whose quarantines count
package quarantine

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// KeptFor is how long a quarantine that holds nothing any more is kept for users to see.
const KeptFor = 7 * 24 * time.Hour

// Phase returns whether the release is held at a time. It depends on the object alone.
func Phase(spec *v1alpha1.ReleaseQuarantineSpec, status *v1alpha1.ReleaseQuarantineStatus, now time.Time) v1alpha1.QuarantinePhase {
	until := Until(spec, status)
	if spec.Lifted || !until.IsZero() && !now.Before(until) {
		return v1alpha1.QuarantineEnded
	}
	return v1alpha1.QuarantineHeld
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
	case next.Phase == v1alpha1.QuarantineHeld:
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
