// SPDX-License-Identifier: Apache-2.0

// Package rolloutstatus is the status of a Rollout that follows from a decision. It is
// pure: what is stored, announced and shown all comes from it.
//
// The files in reading order:
//
//	status.go      the status after a decision
//	rejected.go    the same after writes to targets that the API server has rejected
//	conditions.go  its conditions
//	ready.go       Ready, Reconciling and Stalled
//	unpromoted.go  what is said before the first promotion
//	limit.go       its size
package rolloutstatus

import (
	"maps"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// basis is what the conditions depend on: the state after the decision was recorded, and
// what was gathered for it.
type basis struct {
	promotion.Input                     // its Rollout has the recorded history
	decision        promotion.Decision  // the decision that was taken
	verdicts        []promotion.Verdict // of the candidates after the decision
	rollback        promotion.Rollback  // what is said of going back after the decision
	awaited         *promotion.Verdict  // what a user chose that waits for approvals after it
	status          *v1alpha1.RolloutStatus
}

// After returns the complete status after the decision.
func After(in promotion.Input, d promotion.Decision) (*v1alpha1.RolloutStatus, error) {
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
	b := basis{Input: in, decision: d, verdicts: d.Candidates, rollback: d.Rollback, awaited: d.Awaited, status: status}
	b.Rollout = rollout
	rollout.Annotations = without(rollout.Annotations, d.Consumed)
	if d.Action != promotion.Nothing && d.Action != promotion.Wait {
		next := promotion.Decide(b.Input)
		b.verdicts, b.rollback, b.awaited = next.Candidates, next.Rollback, next.Awaited
	}
	setCandidates(b)
	setTargets(b, in)
	setRegistryMetadata(b)
	setConditions(b)
	fitToLimits(b)
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
func setCandidates(b basis) {
	b.status.ReleaseCandidates, b.status.GatedReleaseCandidates = nil, nil
	for _, verdict := range b.verdicts {
		b.status.ReleaseCandidates = append(b.status.ReleaseCandidates, v1alpha1.ReleaseCandidate{VersionInfo: verdict.Release})
		if letThrough(verdict) {
			b.status.GatedReleaseCandidates = append(b.status.GatedReleaseCandidates, verdict.Release)
		}
	}
	b.status.Gates = promotion.Summaries(b.Input, b.verdicts)
}

func letThrough(v promotion.Verdict) bool {
	return !v.HeldByGates() && !v.HeldBy(v1alpha1.FailedBeforeReason, v1alpha1.GatesBypassedReason)
}

// setTargets shows the state of each target for the version of the newest entry, and before
// there is one, what runs that nobody promoted.
func setTargets(b basis, in promotion.Input) {
	before, restApplied := b.status.Targets, b.restWasApplied()
	b.status.Targets = nil
	current := b.Rollout.Current()
	if current == nil {
		b.status.Targets = notPromoted(b.Input)
		return
	}
	for _, seen := range b.Targets.All {
		next := v1alpha1.TargetStatus{
			Kind: seen.Kind, Namespace: seen.Namespace, Name: seen.Name,
			Version: current.Version.Tag, State: seen.State, Reason: seen.Reason, Message: truncate.Message(seen.Message),
		}
		if b.decision.Action.Promotes() {
			next = unproven(seen, next)
		} else {
			next = settle(before, seen, unlessChanged(before, seen, next), restApplied)
		}
		next.Digest = in.Content().DigestToStore(seen, b.decision.Deploys())
		b.status.Targets = append(b.status.Targets, next)
	}
}

// setRegistryMetadata shows to who looks at the cluster from outside what a rollback cannot
// know here.
func setRegistryMetadata(b basis) {
	b.status.RegistryMetadata = ""
	if b.MetadataOff && b.Rollout.Spec.Rollback != nil {
		b.status.RegistryMetadata = v1alpha1.RegistryMetadataDisabled
	}
}

// unproven returns the status of a target that was just given a release: its report is
// about the release before, except a conflict that affects every release.
func unproven(seen content.Target, next v1alpha1.TargetStatus) v1alpha1.TargetStatus {
	if seen.State != v1alpha1.TargetConflict || seen.Mismatch || seen.Reason == v1alpha1.TargetHistoryOutdated {
		next.State, next.Reason, next.Message = v1alpha1.TargetPending, "", ""
	}
	return next
}

// unlessChanged keeps the stored status of a target if only numbers in a text of Flux have
// changed: Flux tries again and again.
func unlessChanged(before []v1alpha1.TargetStatus, seen content.Target, next v1alpha1.TargetStatus) v1alpha1.TargetStatus {
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
	case content.NotTried(t.State, t.Reason):
		return truncate.SameButNumbers
	case t.State == v1alpha1.TargetApplied:
		return func(a, b string) bool { return a == b }
	}
	return truncate.SameButDurations
}

// settle keeps an applied target applied while Flux only reconciles it again: Flux is not
// Ready for a moment in each of its passes, or cannot begin one, and that is not a change
// of what it has applied. A target beyond the size limit was applied if all of those were.
func settle(before []v1alpha1.TargetStatus, seen content.Target, next v1alpha1.TargetStatus, restApplied bool) v1alpha1.TargetStatus {
	if next.State != v1alpha1.TargetPending || next.Reason != "" && !content.NotTried(next.State, next.Reason) {
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
func (b basis) restWasApplied() bool {
	rest := b.status.Unlisted
	return rest != nil && rest.Targets > 0 && rest.AppliedTargets == rest.Targets && !b.decision.Action.Promotes()
}

// WithoutProgress returns the status as if no target had applied the version and no
// registry had answered.
func WithoutProgress(status *v1alpha1.RolloutStatus) *v1alpha1.RolloutStatus {
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
