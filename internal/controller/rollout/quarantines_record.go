// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// addIncident writes the failure or its outcome, under an optimistic lock.
func (r *Reconciler) addIncident(ctx context.Context, in promotion.Input, q *v1alpha1.ReleaseQuarantine, report promotion.Report) error {
	change := quarantine.Report
	if report.Known {
		change = quarantine.Close
	}
	next, changed := change(q.Status, report.Incident, in.Rollout.Spec.Quarantine)
	if !changed {
		return nil
	}
	next = quarantine.Settle(&q.Spec, next, q.Generation, r.Now())
	patch, err := write.StatusPatch(q.ResourceVersion, q.Status, next)
	if err == nil {
		_, err = write.PatchStatus(ctx, r.Client, q, patch)
	}
	if err != nil {
		return fmt.Errorf("write its status: %w", err)
	}
	announce.Change(ctx, v1alpha1.ReleaseQuarantinedReason, fmt.Sprintf("%s is %s in ReleaseQuarantine %s", report.Tag, next.Phase, q.Name))
	return nil
}
