// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

func TestStateMessageIsAboutTheTargetsOfNow(t *testing.T) {
	const nothing = "no Flux object is annotated with this Rollout: nothing to deploy"
	none, one := &v1alpha1.Proof{}, &v1alpha1.Proof{Targets: 1}
	states := func(all ...v1alpha1.TargetState) []v1alpha1.TargetStatus {
		var targets []v1alpha1.TargetStatus
		for _, state := range all {
			targets = append(targets, v1alpha1.TargetStatus{State: state})
		}
		return targets
	}
	for name, test := range map[string]struct {
		state   v1alpha1.BakeStatus
		proven  *v1alpha1.Proof
		targets []v1alpha1.TargetStatus
		want    string
	}{
		"there is still no target":       {v1alpha1.BakeSucceeded, none, nil, nothing},
		"targets came, and have it":      {v1alpha1.BakeSucceeded, none, states("Applied", "Applied"), "applied; its targets were annotated after it had succeeded"},
		"targets came, and one has it":   {v1alpha1.BakeSucceeded, none, states("Applied", "Pending"), "succeeded before its targets were annotated"},
		"it was proven by targets":       {v1alpha1.BakeSucceeded, one, states("Pending"), nothing},
		"it is not known what proved it": {v1alpha1.BakeSucceeded, nil, states("Applied"), nothing},
		"it has not succeeded":           {v1alpha1.BakeInProgress, none, states("Applied"), nothing},
	} {
		t.Run(name, func(t *testing.T) {
			r := rollout().History(entry("1.0.0").State(test.state).Because(nothing)).Obj()
			r.Status.History[0].ProvenBy, r.Status.Targets = test.proven, test.targets
			diff(t, test.want, promotion.StateMessage(r))
		})
	}
	diff(t, "", promotion.StateMessage(rollout().Obj()))
}
