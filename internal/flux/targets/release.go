// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

// Release is what a Rollout writes into its targets.
type Release struct {
	// Tag of the release; empty if there is none.
	Tag string
	// Digest of what the tag pointed to when it was promoted; empty if it is not known.
	Digest string
	// Adopted is true for a release that is read from the targets: it has the digests that
	// they have.
	Adopted bool
}

// ReleaseOf returns the release of a history entry. A digest that cannot be written counts
// as unknown.
func ReleaseOf(entry *v1alpha1.DeploymentHistoryEntry) Release {
	release := Release{Tag: entry.Version.Tag}
	if digest := entry.Version.Digest; digest != nil && releases.IsDigest(*digest) {
		release.Digest = *digest
	}
	return release
}

// Written returns the part of a release that is written into the target: its tag, and
// its digest, as tag@digest, if the target gets that as well.
func (t Target) Written(release Release) string {
	if len(t.Digests) == 0 {
		return release.Tag
	}
	return releases.Named{Tag: release.Tag, Digest: release.Digest}.String()
}

// AsWritten returns the release of which a part was Written.
func AsWritten(text string) Release {
	named := releases.Name(text)
	return Release{Tag: named.Tag, Digest: named.Digest}
}
