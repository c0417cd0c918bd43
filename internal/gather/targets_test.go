// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// What is stored as a fact counts. Its message may be reworded at any time.
func TestRememberedFailureIsKnownByItsReason(t *testing.T) {
	const tag = "1.1.0"
	written := targets.Target{Repository: fixture.MakeRepository("web").DrivenBy("shop").Tag(tag).Obj()}
	unwritten := targets.Target{Repository: fixture.MakeRepository("web").DrivenBy("shop").Tag("1.0.0").Obj()}
	consumer := targets.Target{
		Kustomization: fixture.MakeKustomization("web").Obj(), Source: fixture.MakeRepository("web").DrivenBy("shop").Tag(tag).Obj(),
	}
	for name, tt := range map[string]struct {
		target  targets.Target
		reason  v1alpha1.TargetReason
		message string
		state   v1alpha1.TargetState
	}{
		"a rejected write is gone once there is nothing to write": {written, v1alpha1.TargetRejected, "in any words", v1alpha1.TargetPending},
		"and remains while there is":                              {unwritten, v1alpha1.TargetRejected, "in any words", v1alpha1.TargetFailed},
		"a failure of Flux remains, even one about a patch":       {written, v1alpha1.TargetNotPulled, "patch failed", v1alpha1.TargetFailed},
		"as does one about health":                                {consumer, v1alpha1.TargetUnhealthy, "in any words", v1alpha1.TargetFailed},
		"and one that only sounds like it":                        {consumer, v1alpha1.TargetNotApplied, "health check failed after 30s", v1alpha1.TargetFailed},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			rollout := fixture.MakeRollout("shop").Obj()
			seen := content.Target{Kind: tt.target.Kind(), Namespace: fixture.Namespace, Name: "web", State: v1alpha1.TargetPending}
			rollout.Status.Targets = []v1alpha1.TargetStatus{{
				Kind: seen.Kind, Namespace: seen.Namespace, Name: seen.Name, Version: tag,
				State: v1alpha1.TargetFailed, Reason: tt.reason, Message: tt.message,
			}}
			got := remember(rollout, tt.target, seen, targets.Release{Tag: tag})
			g.Expect(got.State).To(Equal(tt.state))
			g.Expect(got.Unhealthy).To(Equal(tt.reason == v1alpha1.TargetUnhealthy))
		})
	}
}
