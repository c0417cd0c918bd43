// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/target"
)

// record stores the status if it says anything new, under an optimistic lock:
// of two passes, or two controllers, that decided on the same state only one
// is written, and the other looks again. It returns the Rollout as it is
// stored now, and whether that is news.
func (r *RolloutReconciler) record(ctx context.Context, rollout *v1alpha1.Rollout, status *v1alpha1.RolloutStatus,
	urgent bool) (*v1alpha1.Rollout, bool, error) {
	if !worthWriting(&rollout.Status, status, urgent) {
		return rollout, false, nil
	}
	next := withStatus(rollout, status)
	patch := client.MergeFromWithOptions(withStatus(rollout, &rollout.Status), client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, next, patch, client.FieldOwner(target.FieldManager)); err != nil {
		r.tellUnwritable(rollout, err)
		return rollout, false, fmt.Errorf("write status: %w", err)
	}
	r.unwritable.forget(client.ObjectKeyFromObject(next))
	r.writes.Wrote(next)
	return next, true, nil
}

// withStatus is the least of a Rollout that a patch of its status is made from. The
// answer fills in the rest.
func withStatus(rollout *v1alpha1.Rollout, status *v1alpha1.RolloutStatus) *v1alpha1.Rollout {
	return &v1alpha1.Rollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: rollout.Namespace, Name: rollout.Name, ResourceVersion: rollout.ResourceVersion},
		Status:     *status,
	}
}

// worthWriting reports whether the status says anything new. While a promotion
// is under way, targets that come along and metadata that becomes known are no
// news by themselves: they are told together with what follows, unless it is
// urgent.
func worthWriting(before, after *v1alpha1.RolloutStatus, urgent bool) bool {
	if equality.Semantic.DeepEqual(before, after) {
		return false
	}
	if urgent || len(after.History) == 0 || after.History[0].State() != v1alpha1.BakeDeploying {
		return true
	}
	return !equality.Semantic.DeepEqual(withoutProgress(before), withoutProgress(after))
}
