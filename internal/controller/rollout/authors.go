// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/live"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// withOwners returns the Rollout with the owners of its choices. The caches do not keep
// them, so it reads the Rollout past them.
func (r *Reconciler) withOwners(ctx context.Context, rollout *v1alpha1.Rollout) (*v1alpha1.Rollout, error) {
	stored := &v1alpha1.Rollout{}
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(rollout), stored, writersOfChoices); err != nil {
		return nil, fmt.Errorf("read who chose the version: %w", err)
	}
	if stored.UID != rollout.UID || stored.ResourceVersion != rollout.ResourceVersion {
		return nil, errStale
	}
	return stored, nil
}

// writersOfChoices keeps who has written a choice, and the annotations next to it.
var writersOfChoices = live.OwnersOf(fieldpath.NewSet(
	fieldpath.MakePathOrDie("spec", "wantedVersion"),
	gather.AnnotationPath(v1alpha1.ForceDeployAnnotation), gather.AnnotationPath(v1alpha1.BypassGatesAnnotation), gather.AnnotationPath(v1alpha1.PromoteAnnotation),
	gather.AnnotationPath(v1alpha1.DeployUserAnnotation), gather.AnnotationPath(v1alpha1.DeployMessageAnnotation),
), func(metav1.ManagedFieldsEntry) bool { return false })

// noteRequesters notes who asked for releases, if gates ask for approvals: whoever asked may be
// one too many.
func (r *Reconciler) noteRequesters(ctx context.Context, s *gather.Snapshot) error {
	signed := s.Rollout.Annotations[v1alpha1.DeployUserAnnotation] != "" && s.Approvals.Identity.Choosers
	if !signed || !gather.AsksForApprovals(s.Gates) || len(gather.RequestedReleases(s.Rollout)) == 0 {
		return nil
	}
	stored, err := r.withOwners(ctx, s.Rollout)
	if err == nil {
		s.Approvals.Requesters = gather.Requesters(stored, s.Approvals.Identity)
	}
	return err
}

// attribute notes who chose a release, and decides again if others wrote the annotations
// next to the choice. What others wrote before is no reason for letting a release past gates
// or an Environment now.
func (r *Reconciler) attribute(ctx context.Context, s *gather.Snapshot, d promotion.Decision) (promotion.Decision, error) {
	past := s.Rollout.Annotations[v1alpha1.BypassGatesAnnotation] == d.Release.Tag
	if !d.Manual && !past {
		return d, nil
	}
	stored, err := r.withOwners(ctx, s.Rollout)
	if err != nil {
		return d, err
	}
	s.Attribute(stored, d.Release.Tag, r.gatherer().WhoIs(ctx))
	return promotion.Decide(s.Input), nil
}
