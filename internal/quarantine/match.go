// SPDX-License-Identifier: Apache-2.0

package quarantine

import (
	"slices"
	"strings"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Release is what a quarantine may be about.
type Release struct {
	// Image of the release, without a tag; empty if it is not known.
	Image string
	// Tag of the release.
	Tag string
	// Digest of the release; empty if it is not known.
	Digest string
}

// Matches reports whether a quarantine is about the release. The digest decides, because
// it is the content, whatever repository or tag names it. If the quarantine or the release
// has none, image and tag decide.
func Matches(spec *v1alpha1.ReleaseQuarantineSpec, release Release) bool {
	if spec.Digest != "" && release.Digest != "" {
		return spec.Digest == release.Digest
	}
	return spec.Image != "" && spec.Image == release.Image && slices.Contains(spec.Tags, release.Tag)
}

// nameDigits is how many digits of the digest the name of a quarantine contains.
const nameDigits = 20

// Name returns the name of the ReleaseQuarantine of a digest: the algorithm and the first
// digits. It returns false if the digest has no algorithm, or too few digits.
func Name(digest string) (string, bool) {
	algorithm, digits, ok := strings.Cut(digest, ":")
	if !ok || algorithm == "" || len(digits) < nameDigits {
		return "", false
	}
	return strings.NewReplacer("+", "-", "_", "-", ".", "-").Replace(algorithm) + "-" + digits[:nameDigits], true
}
