// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"bytes"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/approvals"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

// Attribute notes who chose a release that is about to be promoted, given the Rollout with its
// managedFields.
func (s *Snapshot) Attribute(stored *v1alpha1.Rollout, tag string, identity approvals.Identity) {
	s.ForeignAnnotations = othersWords(stored, tag)
	s.ChosenBy = strings.Join(slices.Compact(choosersOf(stored, tag)), ", ")
	s.Approvals.Requesters = Requesters(stored, identity)
}

// RequestedReleases returns the tags of the releases that users ask for.
func RequestedReleases(rollout *v1alpha1.Rollout) []string {
	if pinned := rollout.Pinned(); pinned != "" {
		return []string{releases.Name(pinned).Tag}
	}
	var tags []string
	for _, key := range requests {
		if tag := rollout.Annotations[key]; tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}

// requests are the annotations by which users ask for a release.
var requests = []string{v1alpha1.ForceDeployAnnotation, v1alpha1.BypassGatesAnnotation, v1alpha1.PromoteAnnotation}

// Requesters returns who asked for releases, by tag, given a Rollout with its managedFields. It
// has only names that the API server has checked: the user has written the name in the same
// way as the choice, after the policy was in force.
func Requesters(stored *v1alpha1.Rollout, identity approvals.Identity) map[string]string {
	user, verified := stored.Annotations[v1alpha1.DeployUserAnnotation], map[string]string{}
	if user == "" || !identity.Choosers {
		return verified
	}
	for _, tag := range RequestedReleases(stored) {
		if isSigned(stored, tag, identity.ChoosersSince) {
			verified[tag] = user
		}
	}
	return verified
}

// isSigned reports whether every owner of a choice has made it after a time, and owns the name
// next to it as well.
func isSigned(stored *v1alpha1.Rollout, tag string, since time.Time) bool {
	choices, signed := choicesOf(stored, tag), false
	for _, entry := range stored.ManagedFields {
		if !slices.ContainsFunc(choices, func(choice fieldpath.Path) bool { return owns(entry, choice) }) {
			continue
		}
		if entry.Time == nil || !entry.Time.After(since) || !owns(entry, AnnotationPath(v1alpha1.DeployUserAnnotation)) {
			return false
		}
		signed = true
	}
	return signed
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

// spokeOf reports whether an owner of the annotation also owns the choice of a release. A
// choice that nobody owns, for example after a restore, may be anyone's.
func spokeOf(rollout *v1alpha1.Rollout, annotation, tag string) bool {
	choosers := choosersOf(rollout, tag)
	speakers := writersOf(rollout, AnnotationPath(annotation))
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
	for _, key := range requests {
		if rollout.Annotations[key] == tag {
			choices = append(choices, AnnotationPath(key))
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

// AnnotationPath returns the path of an annotation.
func AnnotationPath(key string) fieldpath.Path {
	return fieldpath.MakePathOrDie("metadata", "annotations", key)
}
