// SPDX-License-Identifier: Apache-2.0

package rolloutstatus

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// notPromoted shows, before the first promotion, the targets that run what nobody promoted.
func notPromoted(in promotion.Input) []v1alpha1.TargetStatus {
	var all []v1alpha1.TargetStatus
	for _, t := range in.Content().NotPromoted() {
		all = append(all, v1alpha1.TargetStatus{
			Kind: t.Kind, Namespace: t.Namespace, Name: t.Name, Version: t.PulledTag(),
			State: t.State, Reason: t.Reason, Message: truncate.Message(t.Message),
		})
	}
	return all
}

// beforeFirstRelease returns what TargetsApplied says before the first promotion.
func beforeFirstRelease(in promotion.Input) (reason, message string) {
	if runs := in.Content().NotPromotedProblem(); runs != nil {
		return runs.Reason, runs.Message
	}
	return v1alpha1.TargetsPendingReason, "nothing was promoted yet"
}

// waitForFirstRelease waits for the first promotion. What runs without one comes first.
func (b basis) waitForFirstRelease() {
	reason, next := v1alpha1.NoReleasesReason, b.noReleases()
	if b.awaited != nil {
		reason, next = b.awaited.Holds[0].Reason, waiting(*b.awaited, nil)
	} else if considered := promotion.Considered(b.verdicts); len(considered) > 0 {
		holds := promotion.FirstHolds(b.Input, considered[0].Release)
		next = waiting(promotion.Verdict{Release: considered[0].Release, Holds: holds}, nil)
		if len(holds) > 0 {
			reason = holds[0].Reason
		}
	}
	if runs := b.Input.Content().NotPromotedProblem(); runs != nil {
		reason, next = runs.Reason, runs.Message+"; "+next
	}
	b.wait(metav1.ConditionFalse, reason, next)
}
