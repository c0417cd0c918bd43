// SPDX-License-Identifier: Apache-2.0

package main

import (
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

func narrateImagePolicy(before, after *imagev1.ImagePolicy) []line {
	is, was := after.Status.LatestRef, before.Status.LatestRef
	if is == nil || was != nil && was.Tag == is.Tag {
		return nil
	}
	return []line{says(imagePolicy, plain, "names %s as the latest release", is.Tag)}
}

func narrateOCIRepository(before, after *sourcev1.OCIRepository) []line {
	if tagOf(after) == scenario.FirstTag {
		return nil // it looks for a tag that is never pushed
	}
	var lines []line
	if tag := tagOf(after); tag != "" && tag != tagOf(before) {
		lines = append(lines, says(ociRepository, plain, "is set to %s (spec.ref.tag)", tag))
	}
	if revision := pulled(after); revision != "" && revision != pulled(before) {
		lines = append(lines, says(ociRepository, plain, "has pulled %s", short(revision)))
	}
	return append(lines, narrateComplaint(ociRepository, before.Status.Conditions, after.Status.Conditions)...)
}

func tagOf(o *sourcev1.OCIRepository) string {
	if o.Spec.Reference == nil {
		return ""
	}
	return o.Spec.Reference.Tag
}

func pulled(o *sourcev1.OCIRepository) string {
	if o.Status.Artifact == nil {
		return ""
	}
	return o.Status.Artifact.Revision
}

func narrateKustomization(before, after *kustomizev1.Kustomization) []line {
	var lines []line
	if applied := after.Status.LastAppliedRevision; applied != "" && applied != before.Status.LastAppliedRevision {
		lines = append(lines, says(kustomization, plain, "has applied %s", short(applied)))
	}
	return append(lines, narrateComplaint(kustomization, before.Status.Conditions, after.Status.Conditions)...)
}

// narrateComplaint returns the message of a Flux object that is not Ready any more,
// unless it only makes progress or waits for its source.
func narrateComplaint(a actor, before, after []metav1.Condition) []line {
	is, was := apimeta.FindStatusCondition(after, meta.ReadyCondition), apimeta.FindStatusCondition(before, meta.ReadyCondition)
	if is == nil || is.Status != metav1.ConditionFalse || was != nil && was.Message == is.Message {
		return nil
	}
	switch is.Reason {
	case meta.ProgressingReason, meta.ArtifactFailedReason, meta.DependencyNotReadyReason:
		return nil
	}
	return []line{says(a, bad, "%s: %s", is.Reason, is.Message)}
}
