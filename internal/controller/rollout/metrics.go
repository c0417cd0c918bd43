// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// count adds the decision of a pass to the metrics, after it is stored.
func (r *Reconciler) count(in promotion.Input, recorded *v1alpha1.Rollout, status *v1alpha1.RolloutStatus, d promotion.Decision, changed bool) {
	pass := metrics.Pass{Before: in.Rollout, Status: status, Decision: d}
	if d.Action.Promotes() {
		pass.Proven = promotion.ProvenSince(in, d.Release)
	}
	if changed {
		pass.Stored = recorded
	}
	r.Metrics.Observe(pass)
}
