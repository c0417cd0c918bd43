// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// Position is where a tag is, seen from what is deployed.
type Position string

const (
	// NoTag: the text cannot be a tag in an OCI registry.
	NoTag Position = "NoTag"
	// Deployed: it is the current release.
	Deployed Position = "Deployed"
	// Candidate: it is newer than the current release, and has a [Verdict].
	Candidate Position = "Candidate"
	// NotAdmitted: the range or the filter of the ImagePolicy leaves it out.
	NotAdmitted Position = "NotAdmitted"
	// Withdrawn: it was deleted from the registry.
	Withdrawn Position = "Withdrawn"
	// SameRelease: it is another name of the current release.
	SameRelease Position = "SameRelease"
	// Older: it is known, and not newer than the current release.
	Older Position = "Older"
	// NotSeen: Flux has not reported it.
	NotSeen Position = "NotSeen"
)

// Standing is what can be said of a tag.
type Standing struct {
	Position Position
	// Message says in one sentence why the tag is no candidate; empty if it is one.
	Message string
	// Verdict is set if it is a candidate.
	Verdict *Verdict
	// Entry is the newest promotion of the tag; nil if it is not in the history.
	Entry *v1alpha1.DeploymentHistoryEntry
}

// StandingOf returns what can be said of any tag, or of a tag with its digest, given the
// decision on the input.
func StandingOf(in Input, d Decision, name string) Standing {
	s, named, history := Standing{}, releases.Name(name), in.Rollout.Status.History
	if i := slices.IndexFunc(d.Candidates, func(v Verdict) bool { return named.Is(v.Release) }); i >= 0 {
		s.Verdict = &d.Candidates[i]
	}
	if i := slices.IndexFunc(history, func(e v1alpha1.DeploymentHistoryEntry) bool { return named.Is(e.Version) }); i >= 0 {
		s.Entry = &history[i]
	}
	s.Position, s.Message = stands(in, d, s, name)
	return s
}

func stands(in Input, d Decision, s Standing, tag string) (Position, string) {
	policy, named := "ImagePolicy "+in.Policy.Name, releases.Name(tag)
	switch current := in.Rollout.Current(); {
	case !releases.IsName(tag):
		return NoTag, verdict.Quote(tag) + " cannot be a tag in an OCI registry"
	case in.Policy.IsDeployed(in.Rollout.Status.History, named):
		return Deployed, fmt.Sprintf("%s is deployed: %s", tag, current.State())
	case s.Verdict != nil:
		return Candidate, ""
	case in.Policy.Order.IsKnown() && !in.Policy.Order.Admits(named.Tag):
		return NotAdmitted, fmt.Sprintf("%s does not admit %s: its range or filter leaves the tag out", policy, tag)
	case !named.IsKnown(d.Ledger):
		return NotSeen, fmt.Sprintf("%s has not reported %s: it is not in the registry, or Flux has not seen it yet", policy, tag)
	case in.Policy.Withdrawn()(named.Tag):
		return Withdrawn, fmt.Sprintf("%s was deleted from the registry", tag)
	case current != nil && in.Policy.Order.Relation(releases.Known(d.Ledger, named.Tag), current.Version) == releases.SameRelease:
		return SameRelease, fmt.Sprintf("%s is another name of %s, which is deployed: both tags have the same content", tag, current.Version.Tag)
	case current != nil:
		return Older, fmt.Sprintf("%s is not newer than %s, which is deployed", tag, current.Version.Tag)
	}
	return Older, fmt.Sprintf("%s is known, but is not a candidate", tag)
}
