// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

// naivePhase is the phase of a quarantine, as the documentation has it.
func naivePhase(q *promotion.Quarantine, now time.Time) v1alpha1.QuarantinePhase {
	until := naiveUntil(q)
	outcomes, rollouts := map[v1alpha1.IncidentOutcome]int{}, map[string]bool{}
	for _, i := range q.Status.Incidents {
		outcomes[i.Outcome]++
		rollouts[string(i.Rollout.UID)] = true
	}
	switch {
	case q.Spec.Lifted:
		return v1alpha1.QuarantineLifted
	case !until.IsZero() && !until.After(now):
		return v1alpha1.QuarantineExpired
	case len(q.Status.Incidents) == 0, outcomes[v1alpha1.IncidentRestored] > 0:
		return v1alpha1.QuarantineConfirmed
	case outcomes[v1alpha1.IncidentOpen] == 0 && outcomes[v1alpha1.IncidentNotRestored] > 0:
		return v1alpha1.QuarantineRefuted
	case len(rollouts) > 1:
		return v1alpha1.QuarantineConfirmed
	}
	return v1alpha1.QuarantineSuspected
}

func naiveUntil(q *promotion.Quarantine) time.Time {
	switch {
	case q.Spec.Until != nil:
		return q.Spec.Until.Time
	case q.Status.Until != nil:
		return q.Status.Until.Time
	}
	return time.Time{}
}

// isAbout reports whether a quarantine is about a release.
func isAbout(in promotion.Input, q *promotion.Quarantine, release v1alpha1.VersionInfo) bool {
	if q.Spec.Digest != "" && digestOf(release) != "" {
		return q.Spec.Digest == digestOf(release)
	}
	return q.Spec.Image == image && in.Policy.Image == image && slices.Contains(q.Spec.Tags, release.Tag)
}

// heldBy returns the quarantines that hold a release now: those that users go past, and
// recalls.
func heldBy(in promotion.Input, release v1alpha1.VersionInfo) (automatic, recalls []*promotion.Quarantine) {
	for i := range in.Quarantines.All {
		q := &in.Quarantines.All[i]
		empty := q.Managed && len(q.Status.Incidents) == 0 // the failure is on its way
		switch phase := naivePhase(q, in.Now); {
		case empty, phase != v1alpha1.QuarantineSuspected && phase != v1alpha1.QuarantineConfirmed, !isAbout(in, q, release):
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
	passes := in.Rollout.ChosenManually() == d.Release.Tag || in.Rollout.UnblocksFailed() || !in.Rollout.Spec.Quarantine.Obeys()
	switch {
	case len(recalls) > 0:
		w.fail("%s is promoted although %s recalls it", d.Release.Tag, recalls[0].Name)
	case d.Back == nil && !passes && len(automatic) > 0:
		w.fail("%s is promoted although %s holds it", d.Release.Tag, automatic[0].Name)
	}
	for _, q := range automatic {
		if d.Back != nil && naivePhase(q, in.Now) == v1alpha1.QuarantineConfirmed {
			w.fail("the rollback goes to %s, and %s confirms that it is bad", d.Release.Tag, q.Name)
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
	for _, all := range [][]*promotion.Quarantine{automatic, recalls} {
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
func lastEnd(all []*promotion.Quarantine) (last time.Time) {
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

// checkReport checks that a failure counts once, also if the controller died before it
// could note that, or an old client has erased the note. It also checks the outcome.
func (w *world) checkReport(q *kept, report promotion.Report, after v1alpha1.ReleaseQuarantineStatus) {
	w.t.Helper()
	is := failureIn(report.Incident)
	if report.Incident.Outcome == v1alpha1.IncidentRestored {
		w.checkRestored(report.Incident)
	}
	if report.Known {
		if after.Strikes != q.Status.Strikes {
			w.fail("an outcome of %s counts as a failure", report.Tag)
		}
		return
	}
	if q.counted[is] {
		w.fail("the failure #%d of %s is reported to %s once more", report.Incident.EntryID, report.Tag, q.Name)
	}
	if after.Strikes != q.Status.Strikes+1 || q.Spec.Lifted || !q.Managed {
		w.fail("%s has %d strikes after %d; lifted: %t", q.Name, after.Strikes, q.Status.Strikes, q.Spec.Lifted)
	}
	q.counted[is], w.fleet.reported[is] = true, true
}

// checkCounted checks that a failure was reported in the pass that recorded it, if nothing
// is against that, and that what is recorded as reported was.
func (w *world) checkCounted(in promotion.Input) {
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
	if !q.counted[reported{w.rollout.UID, failureOf(entry)}] {
		w.fail("the failure of %s was not reported to %s", entry.Version.Tag, q.Name)
	}
}

// isStale reports whether the controller has seen another state of a quarantine than it has
// now.
func isStale(in promotion.Input, q *kept) bool {
	i := slices.IndexFunc(in.Quarantines.All, func(seen promotion.Quarantine) bool { return seen.Name == q.Name })
	return i >= 0 && (in.Quarantines.All[i].Managed != q.Managed || in.Quarantines.All[i].Spec.Lifted != q.Spec.Lifted)
}

// checkRestored checks that the rollback has succeeded that answers the failure.
func (w *world) checkRestored(incident v1alpha1.QuarantineIncident) {
	w.t.Helper()
	history := w.rollout.Status.History
	i := slices.IndexFunc(history, func(e v1alpha1.DeploymentHistoryEntry) bool { return *e.ID == incident.EntryID })
	if i < 1 || !history[i-1].IsRollback() || history[i-1].State() != v1alpha1.BakeSucceeded || history[i-1].Version.Tag != incident.RolledBackTo {
		w.fail("#%d is said to be restored by %s; history: %s", incident.EntryID, incident.RolledBackTo, w.describeHistory())
	}
}

// checkStored checks what the status of a quarantine shows.
func (f *fleet) checkStored(q *kept) {
	f.t.Helper()
	phase := q.Status.Phase
	holds := phase == v1alpha1.QuarantineSuspected || phase == v1alpha1.QuarantineConfirmed
	switch {
	case phase != naivePhase(&q.Quarantine, f.now()):
		f.fail("%s is %s, it should be %s", q.Name, phase, naivePhase(&q.Quarantine, f.now()))
	case holds != (q.Status.EndedAt == nil):
		f.fail("%s is %s, ended at %v", q.Name, phase, q.Status.EndedAt)
	case q.Managed && naiveUntil(&q.Quarantine).IsZero():
		f.fail("%s never ends, and no user wants that", q.Name)
	case len(q.Status.Incidents) > 10:
		f.fail("%s lists %d failures", q.Name, len(q.Status.Incidents))
	}
}

func (f *fleet) fail(format string, args ...any) {
	f.t.Helper()
	f.worlds[0].fail(format, args...)
}
