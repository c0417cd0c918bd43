// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"regexp"
	"strings"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Named is a release as users name it: by its tag, or by its tag and its digest, as
// <tag>@sha256:<hex>.
type Named struct {
	Tag string
	// Digest is empty if the tag alone names it.
	Digest string
}

// Name returns the release that a text names.
func Name(text string) Named {
	tag, digest, _ := strings.Cut(text, "@")
	return Named{Tag: tag, Digest: digest}
}

// String returns the text that names the release.
func (n Named) String() string {
	if n.Digest == "" {
		return n.Tag
	}
	return n.Tag + "@" + n.Digest
}

// IsName reports whether a text can name a release.
func IsName(text string) bool {
	tag, digest, byDigest := strings.Cut(text, "@")
	return IsTag(tag) && (!byDigest || IsDigest(digest))
}

// Is reports whether this is the name of a release. A digest that is not known is another one.
func (n Named) Is(release v1alpha1.VersionInfo) bool {
	return n.Tag == release.Tag && (n.Digest == "" || n.Digest == OrEmpty(release.Digest))
}

// IsKnown reports whether a known release has this name.
func (n Named) IsKnown(ledger []v1alpha1.VersionInfo) bool {
	return Contains(ledger, n.Tag) && n.Is(Known(ledger, n.Tag))
}

// In returns the known release with this name. If there is none, it returns only what the
// name says.
func (n Named) In(ledger []v1alpha1.VersionInfo) v1alpha1.VersionInfo {
	release := Known(ledger, n.Tag)
	if n.Is(release) {
		return release
	}
	return v1alpha1.VersionInfo{Tag: n.Tag, Digest: &n.Digest}
}

// Contain reports whether one of the texts names a release.
func Contain(names []string, release v1alpha1.VersionInfo) bool {
	for _, text := range names {
		if text == release.Tag || text == (Named{release.Tag, OrEmpty(release.Digest)}).String() {
			return true
		}
	}
	return false
}

// validDigest matches the digests that are compared and written. In a variable of a
// Kustomization, any other text could be YAML.
var validDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// IsDigest reports whether a text is a digest of sha256, in lower case.
func IsDigest(text string) bool { return validDigest.MatchString(text) }

// shownDigest is how many characters of a digest a message has.
const shownDigest = len("sha256:") + 8

// NameOf returns the name of a release in a message. One with the tag of the current release
// also needs its digest.
func NameOf(release v1alpha1.VersionInfo, current *v1alpha1.DeploymentHistoryEntry) string {
	digest := OrEmpty(release.Digest)
	if current == nil || current.Version.Tag != release.Tag || digest == "" || Equal(current.Version.Digest, release.Digest) {
		return release.Tag
	}
	if len(digest) > shownDigest {
		digest = digest[:shownDigest] + "…"
	}
	return release.Tag + " (" + digest + ")"
}

// NameAmong returns the name of a release in a list: with its digest if another one there has
// the same tag and other content.
func NameAmong(release v1alpha1.VersionInfo, all []v1alpha1.DeploymentHistoryEntry) string {
	for i := range all {
		if name := NameOf(release, &all[i]); name != release.Tag {
			return name
		}
	}
	return release.Tag
}
