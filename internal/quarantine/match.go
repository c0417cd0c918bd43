// SPDX-License-Identifier: Apache-2.0

package quarantine

import (
	"regexp"
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

// TakesFailures reports whether failures are reported to a quarantine, given whether the
// controller has created it. One that a user has created holds the release anyway, and
// failures would only give it an end. One that a user has lifted takes no more failures:
// what fails after that is not forgiven.
func TakesFailures(spec *v1alpha1.ReleaseQuarantineSpec, managed bool) bool {
	return managed && !spec.Lifted
}

// nameDigits is how many digits of the digest the name of a quarantine contains.
const nameDigits = 20

// digests are those that spec.digest accepts.
var digests = regexp.MustCompile(`^[a-z0-9]+([+._-][a-z0-9]+)*:[a-f0-9]{32,128}$`)

// longestDigest is how long a digest in spec.digest may be.
const longestDigest = 160

// Name returns the name of the ReleaseQuarantine of a digest: the algorithm and the first
// digits. It returns false if the API does not accept the digest.
func Name(digest string) (string, bool) {
	if len(digest) > longestDigest || !digests.MatchString(digest) {
		return "", false
	}
	algorithm, digits, _ := strings.Cut(digest, ":")
	return strings.NewReplacer("+", "-", "_", "-", ".", "-").Replace(algorithm) + "-" + digits[:nameDigits], true
}
