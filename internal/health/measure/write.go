// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// writePace is the minimum time between two writes of a status of which only measurements
// or the message change.
const writePace = time.Minute

// Written is a status as far as it decides when it is written.
type Written struct {
	// Status is Healthy, Unhealthy or Pending.
	Status v1alpha1.HealthStatus
	// ErrorTime is lastErrorTime.
	ErrorTime *metav1.Time
	// Message of the status.
	Message string
	// Measuring is what was measured.
	Measuring v1alpha1.MeasuringStatus
}

// WriteAt returns when a status must be written in place of the one before; zero if there
// is nothing to write. A change of the verdict, the reason, the problem, the query, the
// release or the observed generation is written now. Anything else is written at most once
// a minute.
//
// The last write is zero if this process has written nothing.
func WriteAt(before, after Written, lastWrite, now time.Time) time.Time {
	switch {
	case equality.Semantic.DeepEqual(before, after):
		return time.Time{}
	case !sameVerdict(before, after) || !sameSubject(before.Measuring, after.Measuring) || lastWrite.IsZero():
		return now
	}
	at := lastWrite.Add(writePace)
	if at.Before(now) || at.After(now.Add(writePace)) { // also if the clock was set back
		return now
	}
	return at
}

func sameVerdict(a, b Written) bool {
	return a.Status == b.Status && a.ErrorTime.Equal(b.ErrorTime)
}

// sameSubject reports whether two statuses are about the same. A query that contains
// $(elapsed) differs only in a duration, each time that it is asked.
func sameSubject(a, b v1alpha1.MeasuringStatus) bool {
	return a.Reason == b.Reason && a.Problem == b.Problem && a.ObservedGeneration == b.ObservedGeneration &&
		truncate.SameButDurations(a.Query, b.Query) && equality.Semantic.DeepEqual(a.Release, b.Release)
}
