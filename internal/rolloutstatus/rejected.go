// SPDX-License-Identifier: Apache-2.0

package rolloutstatus

import (
	"cmp"
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Rejected is a target that the API server does not let be written, and why.
type Rejected struct{ Kind, Namespace, Name, Message string }

// WithRejected returns the stored status of a Rollout with targets that could not be
// written. Of the conditions, only those about targets change.
func WithRejected(rollout *v1alpha1.Rollout, in promotion.Input, d promotion.Decision, rejected []Rejected) *v1alpha1.RolloutStatus {
	next := rollout.DeepCopy()
	all, restApplied := int32(len(next.Status.Targets))+next.Status.UnlistedTargets(), int32(0)
	if next.Status.Unlisted != nil {
		restApplied = next.Status.Unlisted.AppliedTargets
	}
	for _, r := range rejected {
		setRejected(&next.Status, r)
	}
	b := basis{Input: in, decision: d, status: &next.Status}
	b.Rollout = next
	decided := promotion.Decide(b.Input)
	b.verdicts, b.rollback = decided.Candidates, decided.Rollback
	setTargetsApplied(b)
	setReady(b)
	keepTargets(&next.Status, all, countApplied(next.Status.Targets)+restApplied)
	return &next.Status
}

// setRejected shows a rejection at its target, even if the size limit of the status has left
// the target out.
func setRejected(s *v1alpha1.RolloutStatus, r Rejected) {
	wanted := v1alpha1.TargetStatus{
		Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Version: s.History[0].Version.Tag,
		State: v1alpha1.TargetFailed, Reason: v1alpha1.TargetRejected, Message: truncate.Message(r.Message),
	}
	i, listed := slices.BinarySearchFunc(s.Targets, wanted, func(a, b v1alpha1.TargetStatus) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if listed {
		wanted.Version = s.Targets[i].Version
		s.Targets[i] = wanted
		return
	}
	s.Targets = slices.Insert(s.Targets, i, wanted)
}
