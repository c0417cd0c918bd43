// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/imagename"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// Compared returns the targets after it has compared the content that Flux pulled with
// the content of the release. This is needed because a tag is only a name: anyone with
// push access can move it to other content at any time. Only the digest identifies the
// content.
//
// A target that pulls the image of the policy proves the release only with the release's
// own content. While that content is not known, the first content that Flux pulled counts
// as the release. For a target that pulls another image, the content with which it was
// first seen applied is the release. Other content that comes later is a deployment of
// its own.
func (in Input) Compared() []Target {
	if in.Rollout.Current() == nil {
		return in.Targets.All
	}
	all, content := slices.Clone(in.Targets.All), in.content()
	for i := range all {
		if all[i].Mismatch { // more may be known now about the content of the release
			all[i].State, all[i].Reason, all[i].Message = v1alpha1.TargetApplied, "", ""
			all[i].Mismatch, all[i].Changes = false, time.Time{}
		}
		if all[i].State == v1alpha1.TargetApplied && all[i].Digest != "" {
			all[i] = in.compared(all[i], content)
		}
	}
	return all
}

func (in Input) compared(t Target, release string) Target {
	if t.Image == "" || t.Image != in.Policy.Image {
		release = "" // the release's digest is not about this image
	}
	current, accepted := in.Rollout.Current(), in.accepted(t)
	if in.isRelease(t.Digest, release, accepted) {
		return t
	}
	unproven := in.lacksProof(t)
	switch tag := current.Version.Tag; {
	case accepted == t.Digest && in.hasRun(release): // another target has pulled the tag again
		t.State, t.Reason = v1alpha1.TargetPending, v1alpha1.TargetDigestMismatch
		t.Message = fmt.Sprintf("still has %s as %s: Flux pulls the tag again at its next interval", tag, t.Digest)
	case unproven != nil:
		t.State, t.Reason, t.Mismatch, t.Changes = v1alpha1.TargetConflict, v1alpha1.TargetDigestMismatch, true, unproven.Next()
		t.Message = fmt.Sprintf("has pulled %s as %s, but the release is %s, and this content is not proven: %s; "+
			"push each release under a tag of its own, or pin another release with spec.wantedVersion", tag, t.Digest, release, unproven.Message)
	case accepted != "" && accepted != t.Digest:
		t.Moved = movedFrom(accepted, tag, t)
	case releases.OrEmpty(current.Version.Digest) == "", current.State() == v1alpha1.BakeSucceeded, in.offers(tag, t.Digest):
		t.Moved = movedFrom(release, tag, t)
	default:
		t.State, t.Reason, t.Mismatch = v1alpha1.TargetConflict, v1alpha1.TargetDigestMismatch, true
		t.Message = fmt.Sprintf("has pulled %s as %s, but the release is %s: "+
			"push each release under a tag of its own; to take what the tag points to now, set spec.digestReflectionPolicy of ImagePolicy %s to Always while %s is its latest, "+
			"or pin another release with spec.wantedVersion",
			tag, t.Digest, release, in.Policy.Name, tag)
	}
	return t
}

// lacksProof returns what the environments before this one have against the content that
// a target has pulled instead of a release that needs their proof. A choice of a user does
// not need it, unless it has it. What has succeeded is not judged again: nothing could keep
// Flux from the content that it pulled later.
func (in Input) lacksProof(t Target) *verdict.Hold {
	current := in.Rollout.Current()
	if t.Image == "" || t.Image != in.Policy.Image || current.State() == v1alpha1.BakeSucceeded {
		return nil
	}
	byUser := current.TriggeredBy != nil && current.TriggeredBy.Kind == v1alpha1.TriggeredByUser
	if byUser && provenUpstream(in, current.Version) != nil {
		return nil
	}
	pulled := releases.Known(in.Rollout.Status.AvailableReleases, current.Version.Tag)
	if releases.OrEmpty(pulled.Digest) != t.Digest {
		pulled = v1alpha1.VersionInfo{Tag: current.Version.Tag, Digest: &t.Digest}
	}
	return provenUpstream(in, pulled)
}

// isRelease reports whether a target has the release's content. If the release has no
// content for this image, the content that the target had before counts.
func (in Input) isRelease(digest, release, accepted string) bool {
	if release == "" {
		return accepted == "" || accepted == digest
	}
	return in.isPart(release, digest)
}

// hasRun reports whether a target that pulls the image of the policy was seen applied
// with that content.
func (in Input) hasRun(release string) bool {
	return slices.ContainsFunc(in.Targets.All, func(t Target) bool {
		has := t.State == v1alpha1.TargetApplied && t.Digest != "" && in.isPart(release, t.Digest)
		return t.Image == in.Policy.Image && (has || in.isPart(release, in.accepted(t)))
	})
}

func movedFrom(was, tag string, t Target) string {
	return fmt.Sprintf("tag %s%s%s has pulled it: it is %s now, and was %s", tag, pushedAgain, t, t.Digest, was)
}

// content returns the digest of the current release. This is the digest that the release
// was recorded with, or else the one that Flux first pulled for the image of the policy.
// It is empty if neither is known.
func (in Input) content() string {
	if digest := releases.OrEmpty(in.Rollout.Current().Version.Digest); digest != "" {
		return digest
	}
	for _, t := range in.Targets.All {
		if accepted := in.accepted(t); t.Image == in.Policy.Image && accepted != "" {
			return accepted
		}
	}
	return in.pulled()
}

// accepted returns the digest with which the target was last seen applied under the
// current release's tag; empty if there is none.
func (in Input) accepted(t Target) string {
	if was := t.StoredIn(in.Rollout.Status.Targets, in.Rollout.Current().Version.Tag); was != nil {
		return was.Digest
	}
	return ""
}

// DigestToStore returns the digest to store for a target with the outcome: the one with
// which it was last seen applied.
func (in Input) DigestToStore(t Target, o Outcome) string {
	moved := o.Reason == v1alpha1.TagMovedReason
	switch {
	case in.Rollout.Current() == nil, o.Action.Promotes() && !moved:
		return ""
	case t.Digest != "" && (t.State == v1alpha1.TargetApplied || t.Moved != ""):
		return t.Digest
	}
	return in.accepted(t)
}

// pulled returns the digest that Flux has applied for the image of the policy; empty if
// it is not known.
func (in Input) pulled() string {
	for _, t := range in.Targets.All {
		if t.State == v1alpha1.TargetApplied && t.Image == in.Policy.Image && t.Image != "" {
			return t.Digest
		}
	}
	return ""
}

// ofEntry returns the release of a history entry, with the content that the entry ran
// with, if Flux has pulled any. Facts about other content of the same tag do not apply to
// it. ofEntry reports false if the tag was pushed again, because then nobody knows what
// ran.
func (in Input) ofEntry(history []v1alpha1.DeploymentHistoryEntry, i int) (v1alpha1.VersionInfo, bool) {
	release, current := history[i].Version, in.Rollout.Current()
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
	release.Digest = releases.OrNil(in.content())
	return release, true
}

// knownEntries returns the releases of the history whose content is known, or whose tags
// still have the same content.
func (in Input) knownEntries() []v1alpha1.VersionInfo {
	var known []v1alpha1.VersionInfo
	for i := range in.Rollout.Status.History {
		if release, ok := in.ofEntry(in.Rollout.Status.History, i); ok {
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
func (in Input) isPart(release, digest string) bool {
	return release == digest || slices.ContainsFunc(in.Metadata, func(m releases.Metadata) bool {
		return m.Digest == release && slices.Contains(m.Manifests, digest)
	})
}

// offers reports whether the registry is known to have that content under the tag.
func (in Input) offers(tag, digest string) bool {
	latest := in.Policy.Latest
	return latest != nil && latest.Tag == tag && releases.OrEmpty(latest.Digest) == digest ||
		releases.OrEmpty(releases.Known(in.Rollout.Status.AvailableReleases, tag).Digest) == digest
}

// undecided returns how many of the newest entries nobody has decided. Each of them is
// other content under the tag of the entry before it.
func undecided(history []v1alpha1.DeploymentHistoryEntry) int {
	n := 0
	for n+1 < len(history) && history[n].Version.Tag == history[n+1].Version.Tag && !imagename.Differ(history[n].Image, history[n+1].Image) {
		n++
	}
	return n
}

// decided returns the newest entry that was decided; nil if there is none.
func decided(rollout *v1alpha1.Rollout) *v1alpha1.DeploymentHistoryEntry {
	if len(rollout.Status.History) == 0 {
		return nil
	}
	return &rollout.Status.History[undecided(rollout.Status.History)]
}

// chooseMoved adds a history entry for content that Flux has deployed without a request:
// other content under the tag of the current release. Nothing could keep Flux from
// deploying it. The entry is evaluated like any other.
func (d *Decision) chooseMoved(in Input) bool {
	target, ok := in.moved()
	if !ok {
		return false
	}
	release := in.Rollout.Current().Version
	switch {
	case in.Policy.Image == "": // once the policy is back, it shows whether the release moved or another image
		release = v1alpha1.VersionInfo{Tag: release.Tag}
	case target.Image == in.Policy.Image && target.Digest != releases.OrEmpty(release.Digest):
		release = v1alpha1.VersionInfo{Tag: release.Tag, Digest: &target.Digest}
	}
	d.promote(in, release, v1alpha1.GroundsMoved)
	d.Reason, d.Message = v1alpha1.TagMovedReason, target.Moved
	return true
}

// moved returns a target that has pulled other content. It prefers a target that pulls
// the image of the policy, because only that image shows what the release is now.
func (in Input) moved() (Target, bool) {
	found, ok := Target{}, false
	for _, t := range in.Targets.All {
		if t.Moved != "" && (!ok || t.Image == in.Policy.Image && found.Image != in.Policy.Image) {
			found, ok = t, true
		}
	}
	return found, ok
}
