// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// chooseApplied takes over the version that all targets have set and applied, no matter
// who has set it.
func (d *Decision) chooseApplied(in Input) {
	carried, outdated := in.Targets.Carried, in.Targets.outdated()
	if d.Problem = in.Targets.unknownVersion(); d.Problem != nil {
		return
	}
	switch {
	case len(carried) == 0:
		d.Action, d.Reason = Wait, v1alpha1.FirstReleaseNotAppliedReason
		d.Message = "spec.firstRelease is Applied, and no Flux object is annotated with this Rollout: annotate the one that runs, or set spec.wantedVersion"
	case len(outdated) > 0:
		d.Action, d.Reason = Wait, v1alpha1.FirstReleaseNotAppliedReason
		d.Message = fmt.Sprintf("spec.firstRelease is Applied: the history begins with %s once every target has applied it; %s; "+
			"if nothing runs yet, set spec.wantedVersion to the first release", carried[0], truncate.Join(outdated, "; "))
	default:
		d.Action, d.Grounds, d.Reason = Adopt, v1alpha1.GroundsAdopted, v1alpha1.ReleaseAdoptedReason
		d.Release, d.Message = in.asPulled(releases.Known(d.Ledger, carried[0])), "spec.firstRelease is Applied"+carriedText
	}
}

// disagree reports that targets have different versions; nil if they agree.
func (t Targets) disagree() *verdict.Problem {
	if len(t.Carried) <= 1 {
		return nil
	}
	return &verdict.Problem{
		Reason: v1alpha1.TargetsDisagreeReason,
		Message: fmt.Sprintf("spec.firstRelease is Applied, and the targets carry different versions (%s): set spec.wantedVersion to the right one",
			truncate.List(t.Carried)),
	}
}

// unknownVersion returns why the version that runs cannot be found out, and a user has to
// set it; nil if it is known, or may be known soon. The version is not known if the field
// is empty: then Flux pulls the tag latest, or the manifests have a default.
func (t Targets) unknownVersion() *verdict.Problem {
	unset := slices.IndexFunc(t.All, func(t Target) bool { return t.Unset })
	switch {
	case len(t.Carried) > 1:
		return t.disagree()
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

// appliedComesFirst holds every release if spec.firstRelease is Applied and the history
// is empty: the history must begin with the version that already runs.
func appliedComesFirst(in Input, _ v1alpha1.VersionInfo) *verdict.Hold {
	if in.Rollout.Current() != nil || in.Rollout.Spec.FirstRelease != v1alpha1.FirstReleaseApplied {
		return nil
	}
	if problem := in.Targets.unknownVersion(); problem != nil {
		return &verdict.Hold{Reason: problem.Reason, Message: problem.Message}
	}
	return &verdict.Hold{
		Reason:  v1alpha1.FirstReleaseNotAppliedReason,
		Message: "spec.firstRelease is Applied: the history begins with what the targets carry, once Flux has applied it",
	}
}

// asPulled returns the release with the content that Flux has pulled: the facts known
// about its tag may belong to a later push.
func (in Input) asPulled(release v1alpha1.VersionInfo) v1alpha1.VersionInfo {
	digest := in.pulled()
	switch {
	case digest == "" || in.isPart(releases.OrEmpty(release.Digest), digest):
	case release.Digest == nil:
		release.Digest = &digest
	default:
		release = v1alpha1.VersionInfo{Tag: release.Tag, Digest: &digest}
	}
	return release
}
