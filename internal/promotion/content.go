// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Compared returns the targets as they are once what Flux has pulled by the release's
// tag is compared with the release: a tag is a name that whoever may push can give to
// something else at any time, and only the digest says what it names.
//
// A target that pulls the image which the policy ranks proves the release only by the
// release's own content; as long as nobody has said what that is, by what Flux pulled
// first. Of a target that pulls another image, what it was first seen applied with is the
// release. Other content that comes after that is a deployment of its own.
func (in Input) Compared() []Target {
	if in.Rollout.Current() == nil {
		return in.Targets.All
	}
	all, content := slices.Clone(in.Targets.All), in.content()
	for i := range all {
		if all[i].Mismatch { // more may be known now of what the release consists of
			all[i].State, all[i].Message, all[i].Mismatch = v1alpha1.TargetApplied, "", false
		}
		if all[i].State == v1alpha1.TargetApplied && all[i].Digest != "" {
			all[i] = in.compared(all[i], content)
		}
	}
	return all
}

func (in Input) compared(t Target, release string) Target {
	if t.Image == "" || t.Image != in.Policy.Image {
		release = "" // it says nothing of this image
	}
	current, accepted := in.Rollout.Current(), in.accepted(t)
	switch tag := current.Version.Tag; {
	case in.isRelease(t.Digest, release, accepted):
	case accepted == t.Digest && in.hasRun(release): // another target has pulled it anew
		t.State, t.Message = v1alpha1.TargetPending, fmt.Sprintf("still has %s as %s: Flux pulls the tag again at its next interval", tag, t.Digest)
	case accepted != "" && accepted != t.Digest:
		t.Moved = movedFrom(accepted, tag, t)
	case orEmpty(current.Version.Digest) == "", current.State() == v1alpha1.BakeSucceeded, in.offers(tag, t.Digest):
		t.Moved = movedFrom(release, tag, t)
	default:
		t.State, t.Mismatch, t.Message = v1alpha1.TargetConflict, true, fmt.Sprintf("has pulled %s as %s, but the release is %s: "+
			"push each release under a tag of its own; to take what the tag points to now, set spec.digestReflectionPolicy of ImagePolicy %s to Always while %s is its latest, "+
			"or pin another release with spec.wantedVersion",
			tag, t.Digest, release, in.Policy.Name, tag)
	}
	return t
}

// isRelease reports whether a target has the release's content, or, of an image of which
// the release says nothing, what it had before.
func (in Input) isRelease(digest, release, accepted string) bool {
	if release == "" {
		return accepted == "" || accepted == digest
	}
	return in.isPart(release, digest)
}

// hasRun reports whether a target that pulls the image which the policy ranks was seen
// applied with that content.
func (in Input) hasRun(release string) bool {
	return slices.ContainsFunc(in.Targets.All, func(t Target) bool {
		has := t.State == v1alpha1.TargetApplied && t.Digest != "" && in.isPart(release, t.Digest)
		return t.Image == in.Policy.Image && (has || in.isPart(release, in.accepted(t)))
	})
}

func movedFrom(was, tag string, t Target) string {
	return fmt.Sprintf("tag %s was pushed again, and %s has pulled it: it is %s now, and was %s", tag, t, t.Digest, was)
}

// content is the digest of the current release: what it was recorded with, or else what
// Flux pulled first of the image that the policy ranks; empty if neither is known.
func (in Input) content() string {
	if digest := orEmpty(in.Rollout.Current().Version.Digest); digest != "" {
		return digest
	}
	for _, t := range in.Targets.All {
		if accepted := in.accepted(t); t.Image == in.Policy.Image && accepted != "" {
			return accepted
		}
	}
	return in.pulled()
}

// accepted is the digest with which the target was last seen applied under the current
// release's tag; empty if it was not.
func (in Input) accepted(t Target) string {
	if was := t.StoredIn(in.Rollout.Status.Targets, in.Rollout.Current().Version.Tag); was != nil {
		return was.Digest
	}
	return ""
}

// DigestToStore is the digest that is to be stored of a target with the decision: that
// with which it was last seen applied.
func (in Input) DigestToStore(t Target, d Decision) string {
	moved := d.Reason == v1alpha1.TagMovedReason
	switch {
	case in.Rollout.Current() == nil, d.Action.Promotes() && !moved:
		return ""
	case t.Digest != "" && (t.State == v1alpha1.TargetApplied || t.Moved != ""):
		return t.Digest
	}
	return in.accepted(t)
}

// pulled is the digest that Flux has applied of the image that the policy ranks; empty
// if that is not known.
func (in Input) pulled() string {
	for _, t := range in.Targets.All {
		if t.State == v1alpha1.TargetApplied && t.Image == in.Policy.Image && t.Image != "" {
			return t.Digest
		}
	}
	return ""
}

// ofEntry is the release of an entry of the history, with the content that the entry ran
// with, if Flux has pulled any: nothing that is known of other content of its tag is about
// it. It reports false once the tag was pushed again, as nobody knows then what ran.
func (in Input) ofEntry(history []v1alpha1.DeploymentHistoryEntry, i int) (v1alpha1.VersionInfo, bool) {
	release, current := history[i].Version, in.Rollout.Current()
	switch {
	case release.Digest != nil:
		return release, true
	case i > 0 && history[i-1].Version.Tag == release.Tag:
		return release, false
	case current == nil || current.Version.Tag != release.Tag:
		return release, true
	case !sameEntry(*current, history[i]): // the newest is just made of other content; an old one is of another time
		return release, i > 0
	}
	release.Digest = text(in.content())
	return release, true
}

// knownEntries are the releases of the history whose content is known, or is still that
// of their tags.
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
	return (a.ID == nil) == (b.ID == nil) && (a.ID == nil || *a.ID == *b.ID) && a.Timestamp.Equal(&b.Timestamp)
}

// isPart reports whether content is the release: the same, or an image that the
// release's index lists. An index that lists the release is no proof: what else it
// lists may be what runs.
func (in Input) isPart(release, digest string) bool {
	return release == digest || slices.ContainsFunc(in.Metadata, func(m Metadata) bool {
		return m.Digest == release && slices.Contains(m.Manifests, digest)
	})
}

// offers reports whether the registry is known to have that content under the tag.
func (in Input) offers(tag, digest string) bool {
	latest := in.Policy.Latest
	return latest != nil && latest.Tag == tag && orEmpty(latest.Digest) == digest ||
		orEmpty(known(in.Rollout.Status.AvailableReleases, tag).Digest) == digest
}

// undecided is how many of the newest entries nobody has decided: each is other content
// under the tag of the entry before it.
func undecided(history []v1alpha1.DeploymentHistoryEntry) int {
	n := 0
	for n+1 < len(history) && history[n].Version.Tag == history[n+1].Version.Tag {
		n++
	}
	return n
}

// decided is the newest entry that somebody has decided; nil if there is none.
func decided(rollout *v1alpha1.Rollout) *v1alpha1.DeploymentHistoryEntry {
	if len(rollout.Status.History) == 0 {
		return nil
	}
	return &rollout.Status.History[undecided(rollout.Status.History)]
}

// chooseMoved makes an entry of its own of what Flux has deployed without having been
// asked: other content under the tag of the current release. Nobody could hold it back;
// it is judged as any other.
func (d *Decision) chooseMoved(in Input) bool {
	target, ok := in.moved()
	if !ok {
		return false
	}
	release := in.Rollout.Current().Version
	switch {
	case in.Policy.Image == "": // whether the release moved, or another image, is seen once the policy is back
		release = v1alpha1.VersionInfo{Tag: release.Tag}
	case target.Image == in.Policy.Image && target.Digest != orEmpty(release.Digest):
		release = v1alpha1.VersionInfo{Tag: release.Tag, Digest: &target.Digest}
	}
	d.promote(in, release)
	d.Reason, d.Message = v1alpha1.TagMovedReason, target.Moved
	return true
}

// moved is a target that has pulled other content: one that pulls the image which the
// policy ranks, if there is any, since only that says what the release is now.
func (in Input) moved() (Target, bool) {
	found, ok := Target{}, false
	for _, t := range in.Targets.All {
		if t.Moved != "" && (!ok || t.Image == in.Policy.Image && found.Image != in.Policy.Image) {
			found, ok = t, true
		}
	}
	return found, ok
}
