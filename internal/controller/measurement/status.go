// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/measure"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// longestProblem is the limit of the API for a problem.
const longestProblem = 1024

// record writes the status if that is due. It returns how long to wait if it is due later,
// and a negative duration if another pass follows anyway. It writes only onto the version
// of the HealthCheck that this pass has read: a result must not undo a reset.
func (r *Reconciler) record(ctx context.Context, check *v1alpha1.HealthCheck, s *state, d decision, pass *announce.Pass) (time.Duration, error) {
	now, next := r.Now(), d.status(check, r.Now())
	at := measure.WriteAt(written(&check.Status), written(&next), s.wrote, now)
	if at.IsZero() || at.After(now) {
		s.accept(d)
		return max(0, at.Sub(now)), nil
	}
	err := r.writeStatus(ctx, check, next)
	switch {
	case apierrors.IsConflict(err):
		pass.Ends("the HealthCheck has changed since it was read, and its event is on its way")
		return -1, nil
	case err != nil:
		return -1, client.IgnoreNotFound(fmt.Errorf("write the status of HealthCheck %s/%s: %w", check.Namespace, check.Name, err))
	}
	s.accept(d)
	s.wrote, s.replaced = now, s.replaced || next.Message != nil && *next.Message != evidence.ResetMessage
	pass.Stored(true)
	if check.Status.Status != next.Status {
		announce.Change(ctx, string(next.Status), *next.Message)
	}
	return -1, nil // the event of the write leads to the next pass
}

func (r *Reconciler) writeStatus(ctx context.Context, check *v1alpha1.HealthCheck, next v1alpha1.HealthCheckStatus) error {
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: check.Namespace, Name: check.Name}}
	answer.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("HealthCheck"))
	patch, err := write.StatusPatch(check.ResourceVersion, check.Status, next)
	if err == nil {
		answer, err = write.PatchStatus(ctx, r.Client, answer, patch)
	}
	if err == nil {
		r.writes.Wrote(answer)
	}
	return err
}

// status returns the status that follows from a decision.
func (d decision) status(check *v1alpha1.HealthCheck, now time.Time) v1alpha1.HealthCheckStatus {
	next := *check.Status.DeepCopy()
	next.Status, next.ObservedGeneration = d.verdict.Status, check.Generation
	next.Reason, next.Problem = d.reason(), truncate.Text(cmp.Or(d.problem, d.found), longestProblem)
	if d.isWorthAWrite(check) {
		next.Message = &d.verdict.Message
	}
	if next.Status != check.Status.Status {
		next.LastChangeTime = health.InSeconds(now)
	}
	if at := health.InSeconds(d.verdict.ErrorTime); !d.verdict.ErrorTime.IsZero() && (next.LastErrorTime == nil || at.After(next.LastErrorTime.Time)) {
		next.LastErrorTime = at
	}
	if !d.began.IsZero() {
		next.Measurements, next.Query, next.Release = d.count.Measurements(), d.query, d.release
		totals := d.count.Totals()
		next.Good, next.Bad = asCount(totals.Good), asCount(totals.Bad)
	}
	return next
}

// asCount returns a number as the API has it.
func asCount(n int) int32 { return int32(min(n, math.MaxInt32)) }

// isWorthAWrite reports whether the message of the verdict is worth a write: that nothing was
// measured yet is not, unless there is a reason, or was one.
func (d decision) isWorthAWrite(check *v1alpha1.HealthCheck) bool {
	return !d.began.IsZero() || d.verdict.Status != check.Status.Status ||
		d.problem != "" || check.Status.Problem != "" ||
		d.next.Obstacle != "" || check.Status.Reason == v1alpha1.MeasuringOtherInstance
}

// release returns the release that a verdict is about. It is nil if that is not known, or
// if the HealthCheck is about several Rollouts: then it proves something for each.
func (s *subject) release() *v1alpha1.MeasuredRelease {
	entry := s.entry()
	if entry == nil || s.shared() {
		return nil
	}
	about := &v1alpha1.MeasuredRelease{Tag: entry.Version.Tag}
	if entry.Version.Digest != nil {
		about.Digest = *entry.Version.Digest
	}
	return about
}

// written returns what decides when a status is written.
func written(s *v1alpha1.HealthCheckStatus) measure.Written {
	w := measure.Written{Status: s.Status, ErrorTime: s.LastErrorTime, Measuring: s.MeasuringStatus}
	if s.Message != nil {
		w.Message = *s.Message
	}
	return w
}
