// SPDX-License-Identifier: Apache-2.0

// Package content says which content runs: what the Flux objects of a Rollout report, and
// whether that is the content of the release. It knows the targets, the status of the
// Rollout, the image of the policy, and which images an index lists.
package content

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// Running is what is known of the content that the targets run.
type Running struct {
	// Rollout with its status: the history, the stored targets, and the known releases.
	Rollout *v1alpha1.Rollout
	// Targets as they report now.
	Targets Targets
	// Policy has the image that the release is of.
	Policy releases.Policy
	// Metadata says which images an index lists.
	Metadata []releases.Metadata
}

// Compared returns the targets after it has compared the content that Flux pulled with
// the content of the release. This is needed because a tag is only a name: anyone with
// push access can move it to other content at any time. Only the digest identifies the
// content.
//
// A target that pulls the image of the policy proves the release only with the release's
// own content. While that content is not known, the first content that Flux pulled counts
// as the release. For a target that pulls another image, the content with which it was
// first seen applied is the release. Other content that comes later is a deployment of
// its own. lacksProof returns what the environments before this one have against the content
// that a target has pulled.
func (r Running) Compared(lacksProof func(Target) *verdict.Hold) []Target {
	if r.Rollout.Current() == nil {
		return r.Targets.All
	}
	all, content := slices.Clone(r.Targets.All), r.Digest()
	for i := range all {
		if all[i].Mismatch { // more may be known now about the content of the release
			all[i].State, all[i].Reason, all[i].Message = v1alpha1.TargetApplied, "", ""
			all[i].Mismatch, all[i].Changes = false, time.Time{}
		}
		if all[i].State == v1alpha1.TargetApplied && all[i].Digest != "" {
			all[i] = r.compared(all[i], content, lacksProof)
		}
	}
	return all
}

func (r Running) compared(t Target, release string, lacksProof func(Target) *verdict.Hold) Target {
	if t.Image == "" || t.Image != r.Policy.Image {
		release = "" // the release's digest is not about this image
	}
	current, accepted := r.Rollout.Current(), r.accepted(t)
	if r.isRelease(t.Digest, release, accepted) {
		return t
	}
	unproven := lacksProof(t)
	switch tag := current.Version.Tag; {
	case accepted == t.Digest && r.hasRun(release): // another target has pulled the tag again
		t.State, t.Reason = v1alpha1.TargetPending, v1alpha1.TargetDigestMismatch
		t.Message = fmt.Sprintf("still has %s as %s: Flux pulls the tag again at its next interval", tag, t.Digest)
	case unproven != nil:
		t.State, t.Reason, t.Mismatch, t.Changes = v1alpha1.TargetConflict, v1alpha1.TargetDigestMismatch, true, unproven.Next()
		t.Message = fmt.Sprintf("has pulled %s as %s, but the release is %s, and this content is not proven: %s; "+
			"push each release under a tag of its own, or pin another release with spec.wantedVersion", tag, t.Digest, release, unproven.Message)
	case r.isPinned(release):
		t.State, t.Reason, t.Mismatch = v1alpha1.TargetConflict, v1alpha1.TargetDigestMismatch, true
		t.Message = fmt.Sprintf("has pulled %s as %s, but spec.wantedVersion pins %s: let the Rollout write the digest, too, by the annotation %s, or pin another release",
			tag, t.Digest, release, v1alpha1.DigestRefAnnotation)
	case accepted != "" && accepted != t.Digest:
		t.Moved = movedFrom(accepted, tag, t)
	case releases.OrEmpty(current.Version.Digest) == "", current.State() == v1alpha1.BakeSucceeded, r.offers(tag, t.Digest):
		t.Moved = movedFrom(release, tag, t)
	default:
		t.State, t.Reason, t.Mismatch = v1alpha1.TargetConflict, v1alpha1.TargetDigestMismatch, true
		t.Message = fmt.Sprintf("has pulled %s as %s, but the release is %s: "+
			"push each release under a tag of its own; to take what the tag points to now, set spec.digestReflectionPolicy of ImagePolicy %s to Always while %s is its latest, "+
			"or pin another release with spec.wantedVersion",
			tag, t.Digest, release, r.Policy.Name, tag)
	}
	return t
}

// isPinned reports whether a user has pinned the release by its digest.
func (r Running) isPinned(release string) bool {
	return release != "" && releases.Name(r.Rollout.Pinned()).Digest == release
}

// isRelease reports whether a target has the release's content. If the release has no
// content for this image, the content that the target had before counts.
func (r Running) isRelease(digest, release, accepted string) bool {
	if release == "" {
		return accepted == "" || accepted == digest
	}
	return r.isPart(release, digest)
}

// hasRun reports whether a target that pulls the image of the policy was seen applied
// with that content.
func (r Running) hasRun(release string) bool {
	return slices.ContainsFunc(r.Targets.All, func(t Target) bool {
		has := t.State == v1alpha1.TargetApplied && t.Digest != "" && r.isPart(release, t.Digest)
		return t.Image != "" && t.Image == r.Policy.Image && (has || r.isPart(release, r.accepted(t)))
	})
}

// PushedAgain is part of the message of an entry that Flux has deployed without a request.
const PushedAgain = " was pushed again, and "

func movedFrom(was, tag string, t Target) string {
	return fmt.Sprintf("tag %s%s%s has pulled it: it is %s now, and was %s", tag, PushedAgain, t, t.Digest, was)
}

// Digest returns the digest of the current release. This is the digest that the release
// was recorded with, or else the one that Flux first pulled for the image of the policy.
// It is empty if neither is known.
func (r Running) Digest() string {
	if digest := releases.OrEmpty(r.Rollout.Current().Version.Digest); digest != "" {
		return digest
	}
	for _, t := range r.Targets.All {
		if accepted := r.accepted(t); t.Image != "" && t.Image == r.Policy.Image && accepted != "" {
			return accepted
		}
	}
	return r.Pulled()
}

// accepted returns the digest with which the target was last seen applied under the
// current release's tag; empty if there is none.
func (r Running) accepted(t Target) string {
	if was := t.StoredIn(r.Rollout.Status.Targets, r.Rollout.Current().Version.Tag); was != nil {
		return was.Digest
	}
	return ""
}

// DigestToStore returns the digest to store for a target: the one with which it was last
// seen applied. A release that is being promoted has none yet.
func (r Running) DigestToStore(t Target, promotes bool) string {
	switch {
	case r.Rollout.Current() == nil, promotes:
		return ""
	case t.Digest != "" && (t.State == v1alpha1.TargetApplied || t.Moved != ""):
		return t.Digest
	}
	return r.accepted(t)
}

// Pulled returns the digest that Flux has applied for the image of the policy; empty if
// it is not known.
func (r Running) Pulled() string {
	for _, t := range r.Targets.All {
		if t.State == v1alpha1.TargetApplied && t.Image == r.Policy.Image && t.Image != "" {
			return t.Digest
		}
	}
	return ""
}

// OfEntry returns the release of a history entry, with the content that the entry ran
// with, if Flux has pulled any. Facts about other content of the same tag do not apply to
// it. OfEntry reports false if the tag was pushed again, because then nobody knows what
// ran.
func (r Running) OfEntry(history []v1alpha1.DeploymentHistoryEntry, i int) (v1alpha1.VersionInfo, bool) {
	release, current := history[i].Version, r.Rollout.Current()
	switch {
	case release.Digest != nil:
		return release, true
	case i > 0 && history[i-1].Version.Tag == release.Tag:
		return release, false
	case current == nil || current.Version.Tag != release.Tag:
		return release, true
	case !sameEntry(*current, history[i]): // the newest entry gets other content; an old one is from another time
		return release, i > 0
	}
	release.Digest = releases.OrNil(r.Digest())
	return release, true
}

// KnownEntries returns the releases of the history whose content is known, or whose tags
// still have the same content.
func (r Running) KnownEntries() []v1alpha1.VersionInfo {
	var known []v1alpha1.VersionInfo
	for i := range r.Rollout.Status.History {
		if release, ok := r.OfEntry(r.Rollout.Status.History, i); ok {
			known = append(known, release)
		}
	}
	return known
}

func sameEntry(a, b v1alpha1.DeploymentHistoryEntry) bool {
	return (a.ID == nil) == (b.ID == nil) && a.IDOrZero() == b.IDOrZero() && a.Timestamp.Equal(&b.Timestamp)
}

// isPart reports whether the digest belongs to the release: it is the same digest, or
// that of an image in the release's index. An index that lists the release is no proof:
// another image of that index may be the one that runs.
func (r Running) isPart(release, digest string) bool {
	return release == digest || slices.ContainsFunc(r.Metadata, func(m releases.Metadata) bool {
		return m.Digest == release && slices.Contains(m.Manifests, digest)
	})
}

// offers reports whether the registry is known to have that content under the tag.
func (r Running) offers(tag, digest string) bool {
	latest := r.Policy.Latest
	return latest != nil && latest.Tag == tag && releases.OrEmpty(latest.Digest) == digest ||
		releases.OrEmpty(releases.Known(r.Rollout.Status.AvailableReleases, tag).Digest) == digest
}

// Moved returns a target that has pulled other content. It prefers a target that pulls
// the image of the policy, because only that image shows what the release is now.
func (r Running) Moved() (Target, bool) {
	found, ok := Target{}, false
	for _, t := range r.Targets.All {
		if t.Moved != "" && (!ok || t.Image == r.Policy.Image && found.Image != r.Policy.Image) {
			found, ok = t, true
		}
	}
	return found, ok
}
