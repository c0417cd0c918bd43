// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/imagename"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// Compared returns the targets after it has compared the content that Flux pulled with the
// content of the release.
func (in Input) Compared() []content.Target { return in.Content().Compared(in.lacksProof) }

// lacksProof returns what the environments before this one have against the content that
// a target has pulled instead of a release that needs their proof. A choice of a user does
// not need it, unless it has it. What has succeeded is not judged again: nothing could keep
// Flux from the content that it pulled later.
func (in Input) lacksProof(t content.Target) *verdict.Hold {
	proven := in.upstreams().Proven
	current := in.Rollout.Current()
	if t.Image == "" || t.Image != in.Policy.Image || current.State() == v1alpha1.BakeSucceeded {
		return nil
	}
	if hold := in.lacksApproval(current, t.Digest); hold != nil {
		return hold
	}
	byUser := current.TriggeredBy != nil && current.TriggeredBy.Kind == v1alpha1.TriggeredByUser
	if byUser && proven(current.Version) != nil {
		return nil
	}
	pulled := releases.Known(in.Rollout.Status.AvailableReleases, current.Version.Tag)
	if releases.OrEmpty(pulled.Digest) != t.Digest {
		pulled = v1alpha1.VersionInfo{Tag: current.Version.Tag, Digest: &t.Digest}
	}
	return proven(pulled)
}

// lacksApproval returns why content may not take the place of what people have approved.
func (in Input) lacksApproval(current *v1alpha1.DeploymentHistoryEntry, digest string) *verdict.Hold {
	record := current.Approval
	if record == nil || record.Outcome != v1alpha1.OutcomeApproved && record.Outcome != v1alpha1.OutcomeOverridden {
		return nil
	}
	return firstOf(in.approving().answerForContent(v1alpha1.VersionInfo{Tag: current.Version.Tag, Digest: &digest}).Holds)
}

// decided returns the newest entry that was decided; nil if there is none. Each entry before
// it is other content under the tag of the entry that follows.
func decided(rollout *v1alpha1.Rollout) *v1alpha1.DeploymentHistoryEntry {
	history := rollout.Status.History
	for i := range history {
		if i+1 == len(history) || history[i].Version.Tag != history[i+1].Version.Tag || imagename.Differ(history[i].Image, history[i+1].Image) {
			return &history[i]
		}
	}
	return nil
}

// moved adds a history entry for content that Flux has deployed without a request:
// other content under the tag of the current release. Nothing could keep Flux from
// deploying it. The entry is evaluated like any other.
func moved(in Input, _ known) (choice, bool) {
	target, ok := in.Content().Moved()
	if !ok {
		return choice{}, false
	}
	release := in.Rollout.Current().Version
	switch {
	case in.Policy.Image == "": // once the policy is back, it shows whether the release moved or another image
		release = v1alpha1.VersionInfo{Tag: release.Tag}
	case target.Image == in.Policy.Image && target.Digest != releases.OrEmpty(release.Digest):
		release = v1alpha1.VersionInfo{Tag: release.Tag, Digest: &target.Digest}
	}
	c := promote(in.Rollout, release, v1alpha1.GroundsMoved)
	c.Reason, c.Message = v1alpha1.TagMovedReason, target.Moved
	return c, true
}
