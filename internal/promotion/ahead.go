// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// settled returns the input with a history in which nothing counts from a time that is still to
// come. A clock that was ahead for a moment would hold everything until then. Such a time counts
// as now instead, and [Record] stores that once.
func (in Input) settled() Input {
	if !slices.ContainsFunc(in.Rollout.Status.History, func(e v1alpha1.DeploymentHistoryEntry) bool { return countsFromLater(&e, in.Now) }) {
		return in
	}
	rollout := *in.Rollout
	rollout.Status.History = slices.Clone(rollout.Status.History)
	for i := range rollout.Status.History {
		settle(&rollout.Status.History[i], in.Now)
	}
	in.Rollout = &rollout
	return in
}

func countsFromLater(e *v1alpha1.DeploymentHistoryEntry, now time.Time) bool {
	cutoff, promoted := e.Cutoff(), metav1.NewTime(e.PromotedTime())
	times := []*metav1.Time{&cutoff, &promoted, e.AppliedTime, e.BakeStartTime, e.BakeEndTime, e.UnprovenSince}
	return slices.ContainsFunc(times, func(at *metav1.Time) bool { return isAhead(at, now) })
}

// settle makes an entry count from no time that is later than now. The timestamps of the
// promotion and of its retry stay: they identify it, and other controllers compare them with
// times of other clocks. A rollback is due as long after the failure as before.
func settle(e *v1alpha1.DeploymentHistoryEntry, now time.Time) {
	present := metav1.Time{Time: verdict.WholeSecond(now)}
	if isAhead(e.BakeEndTime, now) && e.RollbackDue != nil {
		e.RollbackDue = &metav1.Time{Time: present.Add(e.RollbackDue.Sub(e.BakeEndTime.Time))}
	}
	if cutoff := e.Cutoff(); isAhead(&e.Timestamp, now) && e.RetryStartTime == nil || isAhead(&cutoff, now) {
		e.RetryStartTime = &present
	}
	for _, at := range []**metav1.Time{&e.AppliedTime, &e.BakeStartTime, &e.BakeEndTime, &e.UnprovenSince} {
		if isAhead(*at, now) {
			*at = &present
		}
	}
}

// changedAt returns when the status of a HealthCheck last changed. If that time is still to come,
// because the clock of its writer was ahead, it is the other time that is given. That must not be
// now with each look: then nothing would ever be overdue.
func changedAt(check *v1alpha1.HealthCheck, otherwise, now time.Time) time.Time {
	if isAhead(check.Status.LastChangeTime, now) {
		return otherwise
	}
	return timeOf(check.Status.LastChangeTime)
}

// timeOf returns a time of the API; zero if it is absent.
func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// aMoment is how much later than now the timestamp of a retry may be and still be used as
// the start of the retry.
const aMoment = time.Minute

// isAhead reports whether a time is still to come. Clocks of two instances of the controller
// may differ by a moment, and that is not worth a write.
func isAhead(at *metav1.Time, now time.Time) bool { return at != nil && at.Sub(now) > aMoment }
