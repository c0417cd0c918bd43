// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// count adds the decision of a pass to the metrics, after it is stored.
func (r *RolloutReconciler) count(read, recorded *v1alpha1.Rollout, status *v1alpha1.RolloutStatus, d promotion.Decision, news bool) {
	pass := metrics.Pass{Before: read, Status: status, Decision: d}
	if news {
		pass.Stored = recorded
	}
	r.Metrics.Observe(pass)
}

// forget drops what was remembered of a Rollout that is deleted or suspended.
func (r *RolloutReconciler) forget(rollout types.NamespacedName) {
	r.forgetMetadata(rollout)
	r.unwritable.forget(rollout)
	r.Metrics.Forget(rollout)
}
