// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"k8s.io/utils/ptr"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// counted returns what the metrics count of a pass whose decision was stored.
func counted(in promotion.Input, recorded *v1alpha1.Rollout, status *v1alpha1.RolloutStatus, d promotion.Decision, changed bool) metrics.Pass {
	pass := metrics.Pass{Before: in.Rollout, Status: status, Decision: d}
	if gather.AsksForApprovals(in.Gates) {
		pass.Verified = ptr.To(in.Approvals.Identity.Problem == nil)
	}
	if d.Action.Promotes() {
		pass.Proven = in.Upstreams.ProvenSince(d.Release)
	}
	if changed {
		pass.Stored = recorded
	}
	return pass
}
