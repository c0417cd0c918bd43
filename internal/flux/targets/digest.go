// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
)

// IsDigestAnnotation reports whether an annotation names a Rollout that writes the digest of
// its release.
func IsDigestAnnotation(key string) bool {
	return strings.HasPrefix(key, v1alpha1.DigestAnnotationPrefix)
}

// DigestsOf returns the names of the fields into which a Rollout writes the digest of its
// release, sorted: the variables of a Kustomization, the paths of the values of a
// HelmRelease. For an OCIRepository it is the field digest, if the Rollout also writes the
// tag.
func DigestsOf(o client.Object, rollout string) []string {
	return annotated(o, rollout, func(key string) (string, bool) { return digestOfKey(o, key) })
}

// digestOfKey returns the field of an object that an annotation with this key names, and
// whether it names one.
func digestOfKey(o client.Object, key string) (string, bool) {
	switch o.(type) {
	case *sourcev1.OCIRepository:
		return digestField, key == v1alpha1.DigestRefAnnotation && RolloutOf(o) == o.GetAnnotations()[key]
	case *sourcev1.GitRepository:
		return "", false
	case *helmv2.HelmRelease:
		return strings.CutPrefix(key, v1alpha1.DigestValuesAnnotationPrefix)
	}
	variable, ok := strings.CutPrefix(key, v1alpha1.DigestSubstituteAnnotationPrefix)
	return variable, ok && variable != "" && !strings.Contains(variable, ".")
}

// annotatedTwice returns why a field would get both the tag and the digest of a release, if
// it would.
func (t Target) annotatedTwice() observation {
	for _, name := range t.Digests {
		version, digest := t.annotationsOf(name)
		if t.Object().GetAnnotations()[version] != "" {
			return conflict(v1alpha1.TargetInvalidField, "the annotations %s and %s cannot both be followed, because they name the same field: remove one of them", version, digest)
		}
	}
	return observation{}
}

// annotationsOf returns the keys of the annotations with which a field gets the tag and the
// digest.
func (t Target) annotationsOf(name string) (version, digest string) {
	if t.HelmRelease != nil {
		return v1alpha1.ValuesAnnotationPrefix + name + v1alpha1.ValuesAnnotationSuffix, v1alpha1.DigestValuesAnnotationPrefix + name
	}
	return v1alpha1.SubstituteAnnotationPrefix + name + v1alpha1.SubstituteAnnotationSuffix, v1alpha1.DigestSubstituteAnnotationPrefix + name
}

// annotationOf returns the key of the annotation that names a field.
func (t Target) annotationOf(name string) string {
	version, digest := t.annotationsOf(name)
	if t.partOf(name) == theDigest {
		return digest
	}
	return version
}

// pullsOther returns why the digest of a release cannot be written into an OCIRepository: it
// is of another image.
func (t Target) pullsOther() observation {
	if len(t.Digests) == 0 || t.Ranked == "" || t.image() == t.Ranked {
		return observation{}
	}
	return conflict(v1alpha1.TargetOtherImage, "pulls %s, and the ImagePolicy ranks %s, so the digest of the release is not about it: remove the annotation %s",
		t.image(), t.Ranked, v1alpha1.DigestRefAnnotation)
}

// misplacedDigest returns why a GitRepository is not written that is to get the digest of a
// release: a digest is about an image, and Git has commits.
func (t Target) misplacedDigest() observation {
	if !IsGit(t.Repository) || t.Repository.GetAnnotations()[v1alpha1.DigestRefAnnotation] == "" {
		return observation{}
	}
	return conflict(v1alpha1.TargetInvalidField, "the annotation %s has no meaning on a GitRepository, because a digest is about an image: remove it; "+
		"to let nobody move a tag in Git, protect the tags there, and set spec.verify", v1alpha1.DigestRefAnnotation)
}

// awaitsDigest reports whether the target cannot get a release before its digest is known:
// beside the tag of this release, a variable or value with the digest of another one would
// go on to run that one.
func (t Target) awaitsDigest(release Release) bool {
	return t.Repository == nil && len(t.Digests) > 0 && release.Digest == "" && !release.Adopted &&
		(len(t.versions()) == 0 || !t.hasTag(release))
}

// hasTag reports whether every field that gets the tag of a release has it.
func (t Target) hasTag(release Release) bool {
	return !slices.ContainsFunc(t.versions(), func(f field) bool { return f.value != release.Tag })
}

func digestUnknown(release Release) observation {
	return waiting(v1alpha1.TargetDigestUnknown, "waits for the digest of %s, which is not known: to name it, pin %s@sha256:…", release.Tag, release.Tag)
}

// Corrected returns why a target was written although no promotion runs, and says so: it had
// drifted, or it was switched to the digest of the release, or back to its tag.
func (t Target) Corrected(release Release) (reason, message string) {
	switch {
	case t.lacksOnlyDigest(release):
		return v1alpha1.TargetPinnedReason, fmt.Sprintf("%s is pinned to the digest of %s, %s", t, release.Tag, release.Digest)
	case t.Repository != nil && t.leftDigest() && t.hasTag(release):
		return v1alpha1.TargetUnpinnedReason, fmt.Sprintf("%s is not pinned to a digest any more, and pulls %s by its tag", t, release.Tag)
	}
	return v1alpha1.TargetRestoredReason, fmt.Sprintf("%s had drifted and was set to %s again", t, release.Tag)
}

// PinnedAmong returns into how many of the targets that a Rollout writes it also writes the
// digest of its release. GitRepositories do not count: they do not pull the image.
func PinnedAmong(all []Target) content.Pinned {
	pinned, byTag := false, false
	for _, t := range all {
		pinned = pinned || len(t.Digests) > 0
		byTag = byTag || len(t.Digests) == 0 && t.isWritten() && !IsGit(t.Repository)
	}
	switch {
	case pinned && !byTag:
		return content.AllPinned
	case pinned:
		return content.SomePinned
	}
	return content.NonePinned
}

// isWritten reports whether a field of the target belongs to the Rollout.
func (t Target) isWritten() bool {
	return t.Repository != nil || len(t.Variables) > 0 || len(t.Paths) > 0
}
