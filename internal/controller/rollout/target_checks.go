// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// keepTargetChecks creates and corrects the HealthChecks that the Rollout should own, and
// deletes the others. It reports whether all that were missing are there now: then the
// next pass decides, because the caches do not show them yet. If one cannot be written,
// nothing is promoted, and the Rollout says why. If there are very many, the events of the
// first ones begin the next pass.
func (r *Reconciler) keepTargetChecks(ctx context.Context, s *gather.Snapshot) bool {
	for i := range min(len(s.TargetChecks.Surplus), mostWrites) {
		s.Err = errors.Join(s.Err, r.deleteTargetCheck(ctx, &s.TargetChecks.Surplus[i]))
	}
	for i := range min(len(s.TargetChecks.Missing), mostWrites) {
		check := &s.TargetChecks.Missing[i]
		if err := createTargetCheck(ctx, r.Client, r.APIReader, s.Rollout, check); err != nil {
			s.Health.Problem = &verdict.Problem{
				Reason: v1alpha1.HealthCheckMissingReason, Message: gather.MissingCheck(check) + " " + whyMissing(err),
			}
			s.Err = errors.Join(s.Err, err)
			return false
		}
		ctrl.LoggerFrom(ctx).Info("keeps a HealthCheck of a target", "healthCheck", check.Name)
	}
	return len(s.TargetChecks.Missing) > 0
}

// errTaken means that an object of the name exists that the Rollout does not own.
var errTaken = errors.New("exists and is not this Rollout's own: delete it, or rename it")

func whyMissing(err error) string {
	switch {
	case errors.Is(err, errTaken):
		return errTaken.Error()
	case apierrors.IsForbidden(err):
		return "could not be created, because the API server forbids it: let the role of this controller create healthchecks.kuberik.com, and look at quotas"
	}
	return "could not be created" + unreadable.Why(err)
}

// deleteTargetCheck deletes a HealthCheck. While the cache still shows it, it is not deleted
// again.
func (r *Reconciler) deleteTargetCheck(ctx context.Context, check *v1alpha1.HealthCheck) error {
	if r.writes.Stale(check) {
		return nil
	}
	if err := r.writes.Delete(ctx, r.Client, check); err != nil {
		return fmt.Errorf("delete a HealthCheck that is not needed any more: %w", err)
	}
	return nil
}

// createTargetCheck creates a check. One that exists already is corrected, if the Rollout
// owns it; the cache may not show it yet.
func createTargetCheck(ctx context.Context, c client.Client, live client.Reader, rollout *v1alpha1.Rollout, wanted *v1alpha1.HealthCheck) error {
	err := c.Create(ctx, wanted.DeepCopy(), client.FieldOwner(write.FieldManager))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	existing := &v1alpha1.HealthCheck{}
	if err := live.Get(ctx, client.ObjectKeyFromObject(wanted), existing); err != nil {
		return err
	}
	if !metav1.IsControlledBy(existing, rollout) {
		return errTaken
	}
	seen := existing.DeepCopy()
	if !gather.Correct(existing, wanted) {
		return nil
	}
	_, err = write.Patch(ctx, c, existing, client.MergeFrom(seen))
	return err
}
