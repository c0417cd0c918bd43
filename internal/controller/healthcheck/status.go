// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// record writes the result of an evaluation if it changes the status. If the write has to
// wait, record returns how long to wait before the next evaluation.
func (r *Reconciler) record(ctx context.Context, check *v1alpha1.HealthCheck, result health.Result,
	pass *announce.Pass,
) (time.Duration, error) {
	key, now := client.ObjectKeyFromObject(check), r.Now()
	next, changed := health.Next(check.Status, result, now)
	if asked := truncate.Message(check.Annotations[v1alpha1.ReconcileRequestAnnotation]); asked != "" && asked != next.LastHandledReconcileAt {
		next.LastHandledReconcileAt, changed = asked, true
	}
	if !changed {
		return 0, nil
	}
	if health.SameButForMessage(check.Status, next) {
		if wait := r.evaluations.untilNextMessage(key, now); wait > 0 {
			return wait, nil
		}
	}
	written, err := r.writeStatus(ctx, check, next)
	switch {
	case apierrors.IsConflict(err):
		pass.Ends("the HealthCheck has changed since it was read")
		return recheck.AfterConflict, nil
	case apierrors.IsNotFound(err):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("write the status of HealthCheck %s: %w", key, err)
	}
	r.evaluations.wrote(key, written, now)
	r.sharing.wrote(key, check.ResourceVersion, written)
	pass.Stored(true)
	announceVerdict(ctx, check.Status, next)
	return 0, nil
}

// announceVerdict logs that the verdict has changed. A change of only the message is not
// a transition.
func announceVerdict(ctx context.Context, before, after v1alpha1.HealthCheckStatus) {
	if before.Status != after.Status && after.Message != nil {
		announce.Change(ctx, string(after.Status), *after.Message)
	}
}

// writeStatus writes only onto the version of the check that was read before the objects
// were: an observation must not undo a reset that came after it. It returns the version
// that the write created.
func (r *Reconciler) writeStatus(ctx context.Context, check *v1alpha1.HealthCheck,
	next v1alpha1.HealthCheckStatus,
) (string, error) {
	wanted := check.DeepCopy()
	wanted.Status = next
	seen := client.MergeFromWithOptions(check, client.MergeFromWithOptimisticLock{})
	written, err := write.PatchStatus(ctx, r.Client, wanted, seen)
	return written.ResourceVersion, err
}
