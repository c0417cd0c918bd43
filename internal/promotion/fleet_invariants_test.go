// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

// naivePhase is the phase of a quarantine, as the documentation has it.
func naivePhase(q *quarantined.Quarantine, now time.Time) v1alpha1.QuarantinePhase {
	if until := naiveUntil(q); q.Spec.Lifted || !until.IsZero() && !until.After(now) {
		return v1alpha1.QuarantineEnded
	}
	return v1alpha1.QuarantineHeld
}

func naiveUntil(q *quarantined.Quarantine) time.Time {
	switch {
	case q.Spec.Until != nil:
		return q.Spec.Until.Time
	case q.Status.Until != nil:
		return q.Status.Until.Time
	}
	return time.Time{}
}

// isAbout reports whether a quarantine is about a release.
func isAbout(in promotion.Input, q *quarantined.Quarantine, release v1alpha1.VersionInfo) bool {
	if q.Spec.Digest != "" && digestOf(release) != "" {
		return q.Spec.Digest == digestOf(release)
	}
	return q.Spec.Image == image && in.Policy.Image == image && slices.Contains(q.Spec.Tags, release.Tag)
}

// heldBy returns the quarantines that hold a release now: those that users go past, and
// recalls.
func heldBy(in promotion.Input, release v1alpha1.VersionInfo) (automatic, recalls []*quarantined.Quarantine) {
	for i := range in.Quarantines.All {
		q := &in.Quarantines.All[i]
		empty := q.Managed && len(q.Status.Failures) == 0 // the failure is on its way
		switch {
		case empty, naivePhase(q, in.Now) == v1alpha1.QuarantineEnded, !isAbout(in, q, release):
		case q.Spec.Enforce == v1alpha1.EnforceAlways:
			recalls = append(recalls, q)
		default:
			automatic = append(automatic, q)
		}
	}
	return automatic, recalls
}

// checkQuarantines checks what quarantines hold in a decision.
//
// What Flux deployed without a request is recorded, not decided. A release that a user lets
// go past failures goes past quarantines as well.
func (w *world) checkQuarantines(in promotion.Input, d promotion.Decision) {
	w.t.Helper()
	if w.fleet == nil {
		return
	}
	for _, candidate := range d.Candidates {
		w.checkHolds(in, candidate)
	}
	w.checkQuarantineWakes(in, d)
	if !d.Action.Promotes() || d.Action == promotion.Adopt || d.Reason == v1alpha1.TagMovedReason {
		return
	}
	automatic, recalls := heldBy(in, d.Release)
	passes := in.Policy.Chosen(in.Rollout) == d.Release.Tag || in.Rollout.UnblocksFailed() || !in.Rollout.Spec.Quarantine.Obeys()
	switch {
	case len(recalls) > 0:
		w.fail("%s is promoted although %s recalls it", d.Release.Tag, recalls[0].Name)
	case d.Back == nil && !passes && len(automatic) > 0:
		w.fail("%s is promoted although %s holds it", d.Release.Tag, automatic[0].Name)
	}
	for _, q := range automatic {
		if d.Back != nil && !q.Managed {
			w.fail("the rollback goes to %s, and a user says by %s that it is bad", d.Release.Tag, q.Name)
		}
	}
}

// checkHolds checks that a candidate is held by quarantines exactly while there are some,
// and until the last of them ends.
func (w *world) checkHolds(in promotion.Input, candidate promotion.Verdict) {
	w.t.Helper()
	automatic, recalls := heldBy(in, candidate.Release)
	if in.Rollout.UnblocksFailed() || !in.Rollout.Spec.Quarantine.Obeys() {
		automatic = nil
	}
	var want, got []time.Time
	for _, all := range [][]*quarantined.Quarantine{automatic, recalls} {
		if len(all) > 0 {
			want = append(want, lastEnd(all))
		}
	}
	for _, hold := range candidate.Holds {
		if hold.Reason == v1alpha1.QuarantinedReason {
			got = append(got, hold.Until)
		}
	}
	if !slices.EqualFunc(want, got, time.Time.Equal) {
		w.fail("%s is held by quarantines until %v, it should be %v", candidate.Release.Tag, got, want)
	}
}

// lastEnd returns when the last of several quarantines ends; zero if one does not.
func lastEnd(all []*quarantined.Quarantine) (last time.Time) {
	for _, q := range all {
		until := naiveUntil(q)
		if until.IsZero() {
			return until
		}
		if until.After(last) {
			last = until
		}
	}
	return last
}

// checkQuarantineWakes checks that nothing that quarantines hold changes before the
// controller looks again.
func (w *world) checkQuarantineWakes(in promotion.Input, d promotion.Decision) {
	w.t.Helper()
	if d.Action != promotion.Nothing && d.Action != promotion.Wait {
		return
	}
	then := in.Now.Add(2 * 365 * 24 * time.Hour)
	if !d.RecheckAt.IsZero() {
		then = d.RecheckAt.Add(-time.Nanosecond)
	}
	later := w.decideAt(in, then)
	for i := range d.Candidates {
		if before, after := d.Candidates[i].HeldBy(v1alpha1.QuarantinedReason), later.Candidates[i].HeldBy(v1alpha1.QuarantinedReason); before != after {
			w.fail("%s is held: %t, and at %s: %t; but it looks again at %s", d.Candidates[i].Release.Tag, before, then, after, d.RecheckAt)
		}
	}
	if isRecalled(d) != isRecalled(later) {
		w.fail("what a user chose is recalled: %t, and at %s: %t; but it looks again at %s", isRecalled(d), then, isRecalled(later), d.RecheckAt)
	}
}

func isRecalled(d promotion.Decision) bool {
	return d.Problem != nil && d.Problem.Reason == v1alpha1.QuarantinedReason
}

// checkReport checks what a report changes. Only a verdict is reported, and it holds the
// release for a time that begins with it.
func (w *world) checkReport(q *kept, report quarantined.Report, after v1alpha1.ReleaseQuarantineStatus) {
	w.t.Helper()
	is, failed := failureIn(report.Failure), report.Failure
	until := failed.Time.Add(w.rollout.Spec.Quarantine.GetHoldFor())
	switch {
	case q.Spec.Lifted || !q.Managed:
		w.fail("a failure is reported to %s; lifted: %t", q.Name, q.Spec.Lifted)
	case failed.Cause != v1alpha1.CauseHealthCheckFailed && failed.Cause != v1alpha1.CauseTargetUnhealthy:
		w.fail("#%d is reported to %s, and its cause is %s", failed.EntryID, q.Name, failed.Cause)
	case after.Until.Time.Before(until), q.Status.Until != nil && after.Until.Before(q.Status.Until):
		w.fail("%s ends at %s after a failure at %s, and ended at %s", q.Name, after.Until, failed.Time, q.Status.Until)
	case failureIn(after.Failures[0]) != is:
		w.fail("%s does not list #%d first", q.Name, failed.EntryID)
	}
	q.reported[is], w.fleet.reported[is] = true, true
}

// checkReported checks that a failure was reported in the pass that recorded it, if nothing
// is against that, and that what is recorded as reported was.
func (w *world) checkReported(in promotion.Input) {
	w.t.Helper()
	entry := w.current()
	if w.fleet == nil || entry.State() != v1alpha1.BakeFailed {
		return
	}
	if entry.Quarantine != "" && !w.fleet.reported[reported{w.rollout.UID, failureOf(entry)}] {
		w.fail("the failure of %s was not reported to %s", entry.Version.Tag, entry.Quarantine)
	}
	if entry.Version.Digest == nil || !w.rollout.Spec.Quarantine.Reports() {
		return
	}
	name, _ := quarantine.Name(digestOf(entry.Version))
	q := w.fleet.stored[v1alpha1.ReleaseQuarantineKind+" "+name]
	cause := entry.Cause
	old := w.now.After(entry.BakeEndTime.Add(time.Hour)) || cause != v1alpha1.CauseHealthCheckFailed && cause != v1alpha1.CauseTargetUnhealthy
	if q == nil || !q.Managed || q.Spec.Lifted || old || entry.Quarantine != "" || isStale(in, q) {
		return
	}
	if !q.reported[reported{w.rollout.UID, failureOf(entry)}] {
		w.fail("the failure of %s was not reported to %s", entry.Version.Tag, q.Name)
	}
}

// isStale reports whether the controller has seen another state of a quarantine than it has
// now.
func isStale(in promotion.Input, q *kept) bool {
	i := slices.IndexFunc(in.Quarantines.All, func(seen quarantined.Quarantine) bool { return seen.Name == q.Name })
	return i >= 0 && (in.Quarantines.All[i].Managed != q.Managed || in.Quarantines.All[i].Spec.Lifted != q.Spec.Lifted)
}

// checkStored checks what the status of a quarantine shows.
func (f *fleet) checkStored(q *kept) {
	f.t.Helper()
	phase := q.Status.Phase
	switch {
	case phase != naivePhase(&q.Quarantine, f.now()):
		f.fail("%s is %s, it should be %s", q.Name, phase, naivePhase(&q.Quarantine, f.now()))
	case (phase == v1alpha1.QuarantineHeld) != (q.Status.EndedAt == nil):
		f.fail("%s is %s, ended at %v", q.Name, phase, q.Status.EndedAt)
	case q.Managed && naiveUntil(&q.Quarantine).IsZero():
		f.fail("%s never ends, and no user wants that", q.Name)
	case len(q.Status.Failures) > 10:
		f.fail("%s lists %d failures", q.Name, len(q.Status.Failures))
	}
}

func (f *fleet) fail(format string, args ...any) {
	f.t.Helper()
	f.worlds[0].fail(format, args...)
}
