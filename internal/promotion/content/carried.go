// SPDX-License-Identifier: Apache-2.0

package content

import (
	"fmt"
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Disagree reports that targets have different versions; nil if they agree.
func (t Targets) Disagree() *verdict.Problem {
	if len(t.Carried) <= 1 {
		return nil
	}
	return &verdict.Problem{
		Reason: v1alpha1.TargetsDisagreeReason,
		Message: fmt.Sprintf("spec.firstRelease is Applied, and the targets carry different versions (%s): set spec.wantedVersion to the right one",
			truncate.List(t.Carried)),
	}
}

// UnknownVersion returns why the version that runs cannot be found out, and a user has to
// set it; nil if it is known, or may be known soon. The version is not known if the field
// is empty: then Flux pulls the tag latest, or the manifests have a default.
func (t Targets) UnknownVersion() *verdict.Problem {
	unset := slices.IndexFunc(t.All, func(t Target) bool { return t.Unset })
	switch {
	case len(t.Carried) > 1:
		return t.Disagree()
	case len(t.Carried) == 1 && !releases.IsTag(t.Carried[0]):
		return &verdict.Problem{
			Reason: v1alpha1.FirstReleaseUnknownReason,
			Message: fmt.Sprintf("spec.firstRelease is Applied, and the targets carry %s, which cannot be a tag: set spec.wantedVersion to the right one",
				verdict.Quote(t.Carried[0])),
		}
	case unset >= 0:
		return &verdict.Problem{
			Reason:  v1alpha1.FirstReleaseUnknownReason,
			Message: "spec.firstRelease is Applied, and " + t.All[unset].withoutVersion(),
		}
	}
	return nil
}

// withoutVersion describes a target whose version field is empty, and how to go on.
func (t Target) withoutVersion() string {
	if t.Pulled != "" {
		return fmt.Sprintf("%s carries no version, but runs %s, which nobody promoted: set the tag of what runs there, or a release in spec.wantedVersion", t, t.Pulled)
	}
	return t.String() + " carries no version: set the one that runs there or in spec.wantedVersion; if nothing runs yet, set spec.firstRelease to Newest"
}

// AsPulled returns the release with the content that Flux has pulled: the facts known
// about its tag may belong to a later push.
func (r Running) AsPulled(release v1alpha1.VersionInfo) v1alpha1.VersionInfo {
	digest := r.Pulled()
	switch {
	case digest == "" || r.isPart(releases.OrEmpty(release.Digest), digest):
	case release.Digest == nil:
		release.Digest = &digest
	default:
		release = v1alpha1.VersionInfo{Tag: release.Tag, Digest: &digest}
	}
	return release
}
