// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
)

// BeforeHistory adds what matters while there is no history: whether the target has a
// version, and what it has pulled.
func (t Target) BeforeHistory(seen content.Target) content.Target {
	seen.Unset, seen.Pulled = t.Unset(), t.revision()
	return seen
}

// revision returns the revision of the artifact that a Repository has, by whatever tag
// Flux has pulled it. It is empty for other targets, and if there is none. If Flux has pulled
// the digest of spec.ref, it has the tag that stands beside it.
func (t Target) revision() string {
	if t.Repository == nil {
		return ""
	}
	seen, revision := viewOf(t.Repository), revisionOf(t.Repository)
	if seen.digest != "" && revision == seen.digest && seen.tag != "" {
		return seen.tag + "@" + seen.digest
	}
	return revision
}
