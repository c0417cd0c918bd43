// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"cmp"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/imagename"
)

// A tag names a release of one image. If the ImagePolicy ranks the tags of another image
// than before, the promotions until then say nothing of its releases: the same tag may be
// other content there, and a higher version may be older.

// longestImage is how many characters the name of an image in the history may have.
const longestImage = 512

// Ranked returns the image whose tags the policy has ranked; empty if it is not known. A
// typing error in an ImageRepository, which cannot be scanned, changes nothing.
func (p Policy) Ranked() string { return cmp.Or(p.LatestImage, p.Image) }

// RecordedImage returns the image for the history; empty if it is not known, or if its
// name is too long.
func (p Policy) RecordedImage() string {
	if image := p.Ranked(); len(image) <= longestImage {
		return image
	}
	return ""
}

// IsOfAnother reports whether a promotion was one of another image. What is not known
// counts as the same.
func (p Policy) IsOfAnother(entry *v1alpha1.DeploymentHistoryEntry) bool {
	return imagename.Differ(entry.Image, p.Ranked())
}

// IsCurrent reports whether a tag is what the newest promotion deployed. The position is not
// enough if the policy cannot rank the release, or if the known releases list it twice.
func (p Policy) IsCurrent(history []v1alpha1.DeploymentHistoryEntry, tag string) bool {
	return len(history) > 0 && history[0].Version.Tag == tag && !p.IsOfAnother(&history[0])
}

// IsDeployed reports whether the newest promotion deployed the release that a user names.
func (p Policy) IsDeployed(history []v1alpha1.DeploymentHistoryEntry, named Named) bool {
	return p.IsCurrent(history, named.Tag) && named.Is(history[0].Version)
}

// isPushedAgain reports whether a release is other content under the tag of the current one,
// which runs on by its digest.
func (p Policy) isPushedAgain(history []v1alpha1.DeploymentHistoryEntry, release v1alpha1.VersionInfo) bool {
	return p.ByDigest && p.IsCurrent(history, release.Tag) && Differs(history[0].Version.Digest, release.Digest)
}

// FullName returns the name by which a user approves or pins exactly this release, and what
// targets get of it: with its digest if every target gets that.
func (p Policy) FullName(release v1alpha1.VersionInfo) string {
	if p.ByDigest {
		return Named{release.Tag, OrEmpty(release.Digest)}.String()
	}
	return release.Tag
}

// Chosen returns the name of the release that a user requests, pinned or forced. If it is
// empty, the controller chooses.
func (p Policy) Chosen(rollout *v1alpha1.Rollout) string {
	return cmp.Or(rollout.Pinned(), p.Forced(rollout))
}

// Forced returns the tag that the annotation force-deploy requests; empty without one, and if
// it is deployed already.
func (p Policy) Forced(rollout *v1alpha1.Rollout) string {
	tag := rollout.Annotations[v1alpha1.ForceDeployAnnotation]
	if p.IsCurrent(rollout.Status.History, tag) {
		return ""
	}
	return tag
}

// BeforeMove returns the newest promotion whose image is known, if it is one of another
// image; else nil.
func BeforeMove(history []v1alpha1.DeploymentHistoryEntry, policy Policy) *v1alpha1.DeploymentHistoryEntry {
	for i := range history {
		if history[i].Image == "" {
			continue
		}
		if policy.IsOfAnother(&history[i]) {
			return &history[i]
		}
		return nil
	}
	return nil
}
