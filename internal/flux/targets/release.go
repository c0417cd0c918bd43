// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"regexp"
	"strings"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
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

// validDigest matches the digests that are written. In a substitute, any other text could be
// YAML.
var validDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// IsDigest reports whether a text is a digest that can be written: sha256 and 64 lower-case
// hexadecimal digits.
func IsDigest(text string) bool { return validDigest.MatchString(text) }

// ReleaseOf returns the release of a history entry. A digest that cannot be written counts
// as unknown.
func ReleaseOf(entry *v1alpha1.DeploymentHistoryEntry) Release {
	release := Release{Tag: entry.Version.Tag}
	if digest := entry.Version.Digest; digest != nil && IsDigest(*digest) {
		release.Digest = *digest
	}
	return release
}

// Written returns the part of a release that is written into the target: its tag, and
// its digest, as tag@digest, if the target gets that as well.
func (t Target) Written(release Release) string {
	if len(t.Digests) == 0 || release.Digest == "" {
		return release.Tag
	}
	return release.Tag + "@" + release.Digest
}

// AsWritten returns the release of which a part was Written.
func AsWritten(text string) Release {
	tag, digest, _ := strings.Cut(text, "@")
	return Release{Tag: tag, Digest: digest}
}
