// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// report is the basis of the conditions: the state after the decision was recorded, and
// what was gathered for it.
type report struct {
	promotion.Input                     // its Rollout has the recorded history
	decision        promotion.Decision  // the decision that was taken
	verdicts        []promotion.Verdict // of the candidates after the decision
	rollback        promotion.Rollback  // what is said of going back after the decision
	status          *v1alpha1.RolloutStatus
}

// statusAfter returns the complete status after the decision. It is a pure function: what
// is stored, announced and shown all comes from it.
func statusAfter(in promotion.Input, d promotion.Decision) (*v1alpha1.RolloutStatus, error) {
	history, err := promotion.Record(in, d)
	if err != nil {
		return nil, err
	}
	rollout := in.Rollout.DeepCopy()
	status := &rollout.Status
	status.History = history
	status.AvailableReleases = d.Ledger
	promotion.ResolveMetadata(in, status)
	status.ObservedGeneration = rollout.Generation
	status.LastHandledReconcileAt = truncate.Message(rollout.Annotations[v1alpha1.ReconcileRequestAnnotation])
	rep := report{Input: in, decision: d, verdicts: d.Candidates, rollback: d.Rollback, status: status}
	rep.Rollout = rollout
	rollout.Annotations = without(rollout.Annotations, d.Consumed)
	if d.Action != promotion.Nothing && d.Action != promotion.Wait {
		next := promotion.Decide(rep.Input)
		rep.verdicts, rep.rollback = next.Candidates, next.Rollback
	}
	setCandidates(rep)
	setTargets(rep, in)
	setRegistryMetadata(rep)
	setConditions(rep)
	fitToLimits(rep)
	return status, nil
}

func without(annotations map[string]string, keys []string) map[string]string {
	rest := maps.Clone(annotations)
	for _, key := range keys {
		delete(rest, key)
	}
	return rest
}

// setCandidates publishes the candidates, and separately those that the gates let through
// and that did not fail before.
func setCandidates(r report) {
	r.status.ReleaseCandidates, r.status.GatedReleaseCandidates = nil, nil
	for _, verdict := range r.verdicts {
		r.status.ReleaseCandidates = append(r.status.ReleaseCandidates, v1alpha1.ReleaseCandidate{VersionInfo: verdict.Release})
		if letThrough(verdict) {
			r.status.GatedReleaseCandidates = append(r.status.GatedReleaseCandidates, verdict.Release)
		}
	}
	r.status.Gates = promotion.Summaries(r.Input, r.verdicts)
}

func letThrough(v promotion.Verdict) bool {
	return !v.HeldByGates() && !v.HeldBy(v1alpha1.FailedBeforeReason, v1alpha1.GatesBypassedReason)
}

// setTargets shows the state of each target for the version of the newest entry, and before
// there is one, what runs that nobody promoted.
func setTargets(r report, in promotion.Input) {
	before, restApplied := r.status.Targets, r.restWasApplied()
	r.status.Targets = nil
	current := r.Rollout.Current()
	if current == nil {
		r.status.Targets = notPromoted(r.Input)
		return
	}
	for _, seen := range r.Targets.All {
		next := v1alpha1.TargetStatus{
			Kind: seen.Kind, Namespace: seen.Namespace, Name: seen.Name,
			Version: current.Version.Tag, State: seen.State, Reason: seen.Reason, Message: truncate.Message(seen.Message),
		}
		if r.decision.Action.Promotes() {
			next = unproven(seen, next)
		} else {
			next = settle(before, seen, withoutNews(before, seen, next), restApplied)
		}
		next.Digest = in.DigestToStore(seen, r.decision.Outcome)
		r.status.Targets = append(r.status.Targets, next)
	}
}

// setRegistryMetadata shows to who looks at the cluster from outside what a rollback cannot
// know here.
func setRegistryMetadata(r report) {
	r.status.RegistryMetadata = ""
	if r.MetadataOff && r.Rollout.Spec.Rollback != nil {
		r.status.RegistryMetadata = v1alpha1.RegistryMetadataDisabled
	}
}

// unproven returns the status of a target that was just given a release: its report is
// about the release before, except a conflict that affects every release.
func unproven(seen promotion.Target, next v1alpha1.TargetStatus) v1alpha1.TargetStatus {
	if seen.State != v1alpha1.TargetConflict || seen.Mismatch || seen.Reason == v1alpha1.TargetHistoryOutdated {
		next.State, next.Reason, next.Message = v1alpha1.TargetPending, "", ""
	}
	return next
}

// withoutNews keeps the stored status of a target if only numbers in a text of Flux have
// changed: Flux tries again and again.
func withoutNews(before []v1alpha1.TargetStatus, seen promotion.Target, next v1alpha1.TargetStatus) v1alpha1.TargetStatus {
	was := seen.StoredIn(before, next.Version)
	if was != nil && was.State == next.State && was.Reason == next.Reason && sameText(next)(was.Message, next.Message) {
		return *was
	}
	return next
}

// sameText returns how two messages of a target with a status are compared. The message of
// one that is applied has names of other objects, which may differ by a number.
func sameText(t v1alpha1.TargetStatus) func(a, b string) bool {
	switch {
	case promotion.NotTried(t.State, t.Reason):
		return truncate.SameButNumbers
	case t.State == v1alpha1.TargetApplied:
		return func(a, b string) bool { return a == b }
	}
	return truncate.SameButDurations
}

// settle keeps an applied target applied while Flux only reconciles it again: Flux is not
// Ready for a moment in each of its passes, or cannot begin one, and that is not a change
// of what it has applied. A target beyond the size limit was applied if all of those were.
func settle(before []v1alpha1.TargetStatus, seen promotion.Target, next v1alpha1.TargetStatus, restApplied bool) v1alpha1.TargetStatus {
	if next.State != v1alpha1.TargetPending || next.Reason != "" && !promotion.NotTried(next.State, next.Reason) {
		return next
	}
	switch was := seen.StoredIn(before, next.Version); {
	case was != nil && was.State == v1alpha1.TargetApplied:
		return *was
	case was == nil && restApplied:
		next.State, next.Reason, next.Message = v1alpha1.TargetApplied, "", ""
	}
	return next
}

// restWasApplied reports whether the stored status does not list some targets, and all of
// these are applied.
func (r report) restWasApplied() bool {
	rest := r.status.Unlisted
	return rest != nil && rest.Targets > 0 && rest.AppliedTargets == rest.Targets && !r.decision.Action.Promotes()
}

// withoutProgress returns the status as if no target had applied the version and no
// registry had answered.
func withoutProgress(status *v1alpha1.RolloutStatus) *v1alpha1.RolloutStatus {
	plain := status.DeepCopy()
	withoutMetadata(plain)
	if len(plain.History) > 0 {
		plain.History[0].AppliedTime = nil
	}
	if plain.Unlisted != nil {
		plain.Unlisted.AppliedTargets = 0
	}
	for i := range plain.Targets {
		t := &plain.Targets[i]
		t.Digest = ""
		if t.State == v1alpha1.TargetApplied {
			t.State, t.Reason, t.Message = v1alpha1.TargetPending, "", ""
		}
	}
	for i := range plain.Conditions {
		c := &plain.Conditions[i]
		if c.Type == v1alpha1.TargetsAppliedCondition &&
			(c.Reason == v1alpha1.TargetsAppliedReason || c.Reason == v1alpha1.TargetsPendingReason) {
			c.Status, c.Reason, c.Message = "", "", ""
			c.LastTransitionTime.Reset()
		}
	}
	return plain
}

// withoutMetadata leaves only the tag of each release.
func withoutMetadata(status *v1alpha1.RolloutStatus) {
	for _, releases := range [][]v1alpha1.VersionInfo{status.AvailableReleases, status.GatedReleaseCandidates} {
		for i := range releases {
			releases[i] = v1alpha1.VersionInfo{Tag: releases[i].Tag}
		}
	}
	for i := range status.ReleaseCandidates {
		c := &status.ReleaseCandidates[i]
		c.VersionInfo = v1alpha1.VersionInfo{Tag: c.Tag}
	}
	for i := range status.History {
		status.History[i].Version = v1alpha1.VersionInfo{Tag: status.History[i].Version.Tag}
	}
	status.ArtifactType, status.Source, status.Title, status.Description = nil, nil, nil, nil
}
