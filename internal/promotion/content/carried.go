// SPDX-License-Identifier: Apache-2.0

package content

import (
	"fmt"
	"slices"
	"strings"

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
		return fmt.Sprintf("%s carries no version, but runs %s, which was never promoted: set the tag of what runs there, or a release in spec.wantedVersion", t, t.Pulled)
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

// NotPromoted returns the repositories that have pulled a version that nobody promoted,
// each with the reason and a message. It is empty once there is a history: from then on,
// the state of each target shows what it has pulled.
func (r Running) NotPromoted() []Target {
	if len(r.Rollout.Status.History) > 0 {
		return nil
	}
	var all []Target
	for _, t := range r.Targets.All {
		if t.PulledTag() != "" && !r.accountsFor(t) {
			t.Reason, t.Message = v1alpha1.TargetNotPromoted, t.runsUnpromoted()
			all = append(all, t)
		}
	}
	return all
}

// NotPromotedProblem returns what NotPromoted finds as one problem; nil if that is nothing.
func (r Running) NotPromotedProblem() *verdict.Problem {
	var messages []string
	for _, t := range r.NotPromoted() {
		messages = append(messages, t.Message)
	}
	if len(messages) == 0 {
		return nil
	}
	return &verdict.Problem{Reason: v1alpha1.NotPromotedReason, Message: truncate.Join(messages, "; ")}
}

// accountsFor reports whether what a target has pulled came from a promotion whose record
// was lost, or the history begins with the version that the target carries.
func (r Running) accountsFor(t Target) bool {
	adopts := r.Rollout.Spec.FirstRelease == v1alpha1.FirstReleaseApplied && !t.Unset
	return adopts || slices.Contains(r.Targets.Owned, t.PulledTag())
}

// PulledTag returns the tag, or the branch, by which the repository has pulled what it has;
// empty if it has pulled nothing.
func (t Target) PulledTag() string {
	tag, _, _ := strings.Cut(t.Pulled, "@")
	return tag
}

// runsUnpromoted describes what a target runs, why, and how to end that.
func (t Target) runsUnpromoted() string {
	runs := fmt.Sprintf("%s %s runs %s, which was never promoted", t.Kind, t.Name, t.PulledTag())
	switch {
	case t.Reason == v1alpha1.TargetOutranked:
		return runs + ": " + t.Message
	case t.Unset && t.Kind == gitRepository:
		return runs + ": spec.ref.tag is not set, so Flux pulls a branch until the first promotion; to end this now, pin a release in spec.wantedVersion"
	case t.Unset:
		return runs + ": spec.ref.tag is not set, so Flux pulls latest until the first promotion; to end this now, pin a release in spec.wantedVersion"
	}
	return runs + ": it runs until the first promotion; to end this now, pin a release in spec.wantedVersion"
}
