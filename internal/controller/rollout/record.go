// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/rolloutstatus"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// record stores the status if it has changed, under an optimistic lock. If two passes or
// two controllers decide on the same state, only one write succeeds, and the other pass
// starts again. It returns the Rollout as it is stored now, and whether it was written.
func (r *Reconciler) record(ctx context.Context, rollout *v1alpha1.Rollout, status *v1alpha1.RolloutStatus,
	urgent bool) (*v1alpha1.Rollout, bool, error) {
	if !worthWriting(&rollout.Status, status, urgent) {
		return rollout, false, nil
	}
	patch, err := write.StatusPatch(rollout.ResourceVersion, rollout.Status, *status)
	if err != nil {
		return rollout, false, err
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: rollout.Namespace, Name: rollout.Name}}
	answer.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.RolloutKind))
	answer, err = write.PatchStatus(ctx, r.Client, answer, patch)
	if err != nil {
		r.reportUnwritable(ctx, rollout, err)
		return rollout, false, fmt.Errorf("write status: %w", err)
	}
	r.memory.of(client.ObjectKeyFromObject(rollout)).unwritable = ""
	r.writes.Wrote(answer)
	next := *rollout
	next.ResourceVersion, next.Status = answer.ResourceVersion, *status
	return &next, true, nil
}

// worthWriting reports whether the status has changed enough to be written. During a
// promotion, progress of targets and new metadata alone are not enough. They are written
// with the next change, unless the write is urgent.
func worthWriting(before, after *v1alpha1.RolloutStatus, urgent bool) bool {
	if equality.Semantic.DeepEqual(before, after) {
		return false
	}
	if urgent || len(after.History) == 0 || after.History[0].State() != v1alpha1.BakeDeploying {
		return true
	}
	return !equality.Semantic.DeepEqual(rolloutstatus.WithoutProgress(before), rolloutstatus.WithoutProgress(after))
}
