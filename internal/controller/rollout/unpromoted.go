// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// notPromoted shows, before the first promotion, the targets that run what nobody promoted.
func notPromoted(in promotion.Input) []v1alpha1.TargetStatus {
	var all []v1alpha1.TargetStatus
	for _, t := range promotion.NotPromoted(in) {
		all = append(all, v1alpha1.TargetStatus{
			Kind: t.Kind, Namespace: t.Namespace, Name: t.Name, Version: t.PulledTag(),
			State: t.State, Reason: t.Reason, Message: truncate.Message(t.Message),
		})
	}
	return all
}

// beforeFirstRelease returns what TargetsApplied says before the first promotion.
func beforeFirstRelease(in promotion.Input) (reason, message string) {
	if runs := promotion.NotPromotedProblem(in); runs != nil {
		return runs.Reason, runs.Message
	}
	return v1alpha1.TargetsPendingReason, "nothing was promoted yet"
}

// waitForFirstRelease waits for the first promotion. What runs without one comes first.
func (r report) waitForFirstRelease() {
	runs := promotion.NotPromotedProblem(r.Input)
	if runs == nil {
		r.wait(metav1.ConditionFalse, v1alpha1.NoReleasesReason, r.noReleases())
		return
	}
	next := r.noReleases()
	if considered := promotion.Considered(r.verdicts); len(considered) > 0 {
		next = waiting(considered[0])
	}
	r.wait(metav1.ConditionFalse, runs.Reason, runs.Message+"; "+next)
}
