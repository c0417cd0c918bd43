// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cache/expectations"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// resetter resets HealthChecks.
type resetter struct {
	client client.Client
	live   client.Reader
	writes *expectations.Versions
	marks  *markCounts
	now    func() time.Time
}

func (r *Reconciler) resetter() resetter {
	return resetter{r.Client, r.APIReader, &r.writes, &r.marks, r.Now}
}

// unreset returns the HealthChecks that must be reset, except those whose reset the cache
// does not show yet.
func (r resetter) unreset(checks []v1alpha1.HealthCheck, resets []int) []v1alpha1.HealthCheck {
	var unreset []v1alpha1.HealthCheck
	for _, i := range resets {
		if !r.writes.Stale(&checks[i]) {
			unreset = append(unreset, checks[i])
		}
	}
	return unreset
}

// asReset sets checks to Pending if they were reset and the cache does not show it yet.
// An error that is reported between the two writes of a reset belongs to neither
// promotion and blocks nothing.
func (r resetter) asReset(checks []v1alpha1.HealthCheck) []v1alpha1.HealthCheck {
	for i := range checks { // shallow copies of the objects in the cache
		if r.writes.Stale(&checks[i]) {
			checks[i].Status.Status = v1alpha1.HealthStatusPending
		}
	}
	return checks
}

// reset resets a HealthCheck: its reports from now on are about the current promotion.
// The status is written first and the mark second. After a crash in between, the check is
// only reset once more. An error that is removed with the status is recorded before, so
// its writer can report it again and it does not count as a new error.
func (r *Reconciler) reset(ctx context.Context, rollout *v1alpha1.Rollout, seen *v1alpha1.HealthCheck) error {
	err := r.resetter().reset(ctx, rollout, seen)
	r.memory.of(client.ObjectKeyFromObject(rollout)).noteReset(seen, err)
	return err
}

func (r resetter) reset(ctx context.Context, rollout *v1alpha1.Rollout, seen *v1alpha1.HealthCheck) error {
	check := *seen.DeepCopy()
	current, key := rollout.Current(), v1alpha1.ResetAnnotationPrefix+string(rollout.UID)
	begun := check.Annotations[key]
	if failed := check.Status.LastErrorTime; failed != nil {
		begun = evidence.BegunMark(current, failed)
		patch := client.MergeFromWithOptions(check.DeepCopy(), client.MergeFromWithOptimisticLock{}) // only if the error is still this one
		if err := r.mark(ctx, &check, key, begun, patch); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	if err := r.resetStatus(ctx, &check); err != nil {
		return client.IgnoreNotFound(err)
	}
	complete := evidence.CompleteMark(current, begun)
	return client.IgnoreNotFound(r.mark(ctx, &check, key, complete, client.MergeFrom(check.DeepCopy())))
}

// noteReset remembers why the API server refuses to reset a HealthCheck. Every pass reports
// that until the reset is not refused any more.
func (m *remembered) noteReset(check *v1alpha1.HealthCheck, err error) {
	var why *string
	if isRejected(err) {
		text := truncate.Message(err.Error())
		why = &text
	}
	m.resets.put(check, why)
}

// rejectedResets returns the refusals for the checks that the Rollout selects now, and
// forgets the others.
func (m *remembered) rejectedResets(checks []v1alpha1.HealthCheck) map[string]string {
	rejected, selected := map[string]string{}, perObject[string]{}
	for i := range checks {
		if why := m.resets.of(&checks[i]); why != nil {
			rejected[client.ObjectKeyFromObject(&checks[i]).String()] = *why
			selected[checks[i].UID] = why
		}
	}
	m.resets = selected
	return rejected
}

// mark annotates the check and updates it from the response.
func (r resetter) mark(ctx context.Context, check *v1alpha1.HealthCheck, key, value string, patch client.Patch) error {
	r.dropMarks(ctx, check)
	metav1.SetMetaDataAnnotation(&check.ObjectMeta, key, value)
	written, err := write.Patch(ctx, r.client, check, patch)
	if err != nil {
		return fmt.Errorf("mark HealthCheck %s/%s as reset: %w", check.Namespace, check.Name, err)
	}
	r.writes.Wrote(written)
	*check = *written
	return nil
}

// problemOf returns the part of what was measured that a reset keeps: the problem of the
// spec.
func problemOf(s v1alpha1.MeasuringStatus) v1alpha1.MeasuringStatus {
	kept := v1alpha1.MeasuringStatus{ObservedGeneration: s.ObservedGeneration, Problem: s.Problem}
	if s.Problem != "" {
		kept.Reason = s.Reason
	}
	return kept
}

// resetStatus resets only the status that was read: it must remove exactly what was
// recorded.
func (r resetter) resetStatus(ctx context.Context, check *v1alpha1.HealthCheck) error {
	next := check.DeepCopy()
	message, now := evidence.ResetMessage, metav1.NewTime(r.now())
	next.Status = v1alpha1.HealthCheckStatus{
		Status: v1alpha1.HealthStatusPending, Message: &message, LastChangeTime: &now,
		LastHandledReconcileAt: check.Status.LastHandledReconcileAt,
		MeasuringStatus:        problemOf(check.Status.MeasuringStatus),
	}
	patch := client.MergeFromWithOptions(check, client.MergeFromWithOptimisticLock{})
	written, err := write.PatchStatus(ctx, r.client, next, patch)
	if err != nil {
		return fmt.Errorf("reset HealthCheck %s/%s: %w", check.Namespace, check.Name, err)
	}
	*check = *written
	return nil
}
