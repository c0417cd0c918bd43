// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// addFailure writes the failure, under an optimistic lock.
func (w quarantineWriter) addFailure(ctx context.Context, in promotion.Input, q *v1alpha1.ReleaseQuarantine, report quarantined.Report) error {
	next, changed := quarantine.Report(q.Status, report.Failure, in.Rollout.Spec.Quarantine)
	if !changed {
		return nil
	}
	next = quarantine.Settle(&q.Spec, next, q.Generation, w.now())
	patch, err := write.StatusPatch(q.ResourceVersion, q.Status, next)
	if err == nil {
		_, err = write.PatchStatus(ctx, w.client, q, patch)
	}
	if err != nil {
		return fmt.Errorf("write its status: %w", err)
	}
	announce.Change(ctx, v1alpha1.ReleaseQuarantinedReason, fmt.Sprintf("the failure of %s was reported to ReleaseQuarantine %s", report.Tag, q.Name))
	return nil
}
