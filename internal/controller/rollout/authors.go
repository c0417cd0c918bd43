// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

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

// othersWords returns which of the annotations deploy-user and deploy-message were not
// written by the author of the choice that is about to be recorded.
func othersWords(rollout *v1alpha1.Rollout, tag string) map[string]bool {
	others := map[string]bool{}
	for _, key := range []string{v1alpha1.DeployUserAnnotation, v1alpha1.DeployMessageAnnotation} {
		if rollout.Annotations[key] != "" {
			others[key] = !spokeOf(rollout, key, tag)
		}
	}
	return others
}

// writersOfChoices keeps who has written a choice, and the annotations next to it.
var writersOfChoices = live.OwnersOf(fieldpath.NewSet(
	fieldpath.MakePathOrDie("spec", "wantedVersion"),
	annotationPath(v1alpha1.ForceDeployAnnotation), annotationPath(v1alpha1.BypassGatesAnnotation), annotationPath(v1alpha1.PromoteAnnotation),
	annotationPath(v1alpha1.DeployUserAnnotation), annotationPath(v1alpha1.DeployMessageAnnotation),
), func(metav1.ManagedFieldsEntry) bool { return false })

func annotationPath(key string) fieldpath.Path {
	return fieldpath.MakePathOrDie("metadata", "annotations", key)
}

// spokeOf reports whether an owner of the annotation also owns the choice of a release. A
// choice that nobody owns, for example after a restore, may be anyone's.
func spokeOf(rollout *v1alpha1.Rollout, annotation, tag string) bool {
	choosers := choosersOf(rollout, tag)
	speakers := writersOf(rollout, annotationPath(annotation))
	return len(choosers) == 0 || len(speakers) == 0 ||
		slices.ContainsFunc(speakers, func(speaker string) bool { return slices.Contains(choosers, speaker) })
}

// choosersOf returns the owners of the choice of a release.
func choosersOf(rollout *v1alpha1.Rollout, tag string) []string {
	var choosers []string
	for _, choice := range choicesOf(rollout, tag) {
		choosers = append(choosers, writersOf(rollout, choice)...)
	}
	return choosers
}

// choicesOf returns the fields by which a user has chosen a release, or lets it go past
// what holds it.
func choicesOf(rollout *v1alpha1.Rollout, tag string) []fieldpath.Path {
	if rollout.Pinned() != "" {
		return []fieldpath.Path{fieldpath.MakePathOrDie("spec", "wantedVersion")}
	}
	var choices []fieldpath.Path
	for _, key := range []string{v1alpha1.ForceDeployAnnotation, v1alpha1.BypassGatesAnnotation, v1alpha1.PromoteAnnotation} {
		if rollout.Annotations[key] == tag {
			choices = append(choices, annotationPath(key))
		}
	}
	return choices
}

// writersOf returns the owners of a field. Each kubectl command has its own field
// manager, but is the same user.
func writersOf(rollout *v1alpha1.Rollout, field fieldpath.Path) []string {
	var writers []string
	for _, entry := range rollout.ManagedFields {
		if owns(entry, field) {
			writer, _, _ := strings.Cut(entry.Manager, "-")
			if writer != "kubectl" {
				writer = entry.Manager
			}
			writers = append(writers, writer)
		}
	}
	return writers
}

func owns(entry metav1.ManagedFieldsEntry, field fieldpath.Path) bool {
	fields := &fieldpath.Set{}
	return entry.FieldsV1 != nil && fields.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())) == nil && fields.Has(field)
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
	s.ForeignAnnotations, s.ChosenBy = othersWords(stored, d.Release.Tag), strings.Join(slices.Compact(choosersOf(stored, d.Release.Tag)), ", ")
	return promotion.Decide(s.Input), nil
}
