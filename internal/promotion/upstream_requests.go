// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"slices"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// bypassesUpstreams reports whether a user lets the release go past an Environment that
// would hold it.
func bypassesUpstreams(in Input, release v1alpha1.VersionInfo) bool {
	for _, e := range in.Upstreams.Environments {
		if e.opposes(in, release) && e.isBypassed(in, release.Tag) {
			return true
		}
	}
	return false
}

// unchecked says which upstreams have proven the release without a HealthCheck: Flux
// applied it there, and nothing else was asked. It is empty if there are none.
func unchecked(in Input, release v1alpha1.VersionInfo) string {
	var names []string
	for _, e := range in.Upstreams.Environments {
		for _, u := range e.Upstreams {
			said, _ := e.recognize(u, release)
			applied := said != nil && said.State == v1alpha1.BakeSucceeded && said.Evidence == environmentsv1.EvidenceApplied
			if u.Type != environmentsv1.Parallel && applied && !slices.Contains(names, u.Environment) {
				names = append(names, u.Environment)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; no HealthCheck was asked in " + truncate.List(names)
}

// opposes reports whether the Environment holds the release, unless it is bypassed.
func (e Environment) opposes(in Input, release v1alpha1.VersionInfo) bool {
	return e.isLeftToUsers(in) && !isPromoted(in, release.Tag) || e.holds(in, release) != nil
}

// refusedBypass explains why an Environment still holds the release that a user lets go
// past the gates; nil if none does.
func refusedBypass(in Input, release v1alpha1.VersionInfo) *verdict.Problem {
	tag := release.Tag
	for _, e := range in.Upstreams.Environments {
		switch {
		case e.isBypassed(in, tag) || !e.opposes(in, release):
		case e.Spec.Bypass == environmentsv1.BypassDenied:
			return &verdict.Problem{Reason: environmentsv1.BypassDeniedReason, Message: fmt.Sprintf(
				"%s does not let %s past Environment %s: its spec.bypass is Deny", v1alpha1.BypassGatesAnnotation, tag, e.Name)}
		default:
			return &verdict.Problem{Reason: environmentsv1.BypassNeedsReasonReason, Message: fmt.Sprintf(
				"%s lets %s past Environment %s only with a reason: annotate it again, together with %s",
				v1alpha1.BypassGatesAnnotation, tag, e.Name, v1alpha1.DeployMessageAnnotation)}
		}
	}
	return nil
}

// isPromoted reports whether a user has promoted the release, where an Environment leaves
// that to users.
func isPromoted(in Input, tag string) bool {
	return in.leavesPromotionsToUsers() && in.Rollout.Annotations[v1alpha1.PromoteAnnotation] == tag
}

func (in Input) leavesPromotionsToUsers() bool {
	return slices.ContainsFunc(in.Upstreams.Environments, func(e Environment) bool { return e.isLeftToUsers(in) })
}

// answerPromote answers a request to promote. One for a release that is not a candidate
// stays, and takes effect when the release becomes one.
func (d *Decision) answerPromote(in Input) {
	asked, current := in.Rollout.Annotations[v1alpha1.PromoteAnnotation], in.Rollout.Current()
	switch {
	case asked == "" || len(in.Upstreams.Environments) == 0 || d.Action.Promotes() && d.Release.Tag == asked:
	case current != nil && current.Version.Tag == asked:
		d.consume(in, v1alpha1.PromoteAnnotation)
		if !current.State().Running() {
			d.decline(environmentsv1.PromoteNotNeededReason, fmt.Sprintf("%s names %s, which is deployed already", v1alpha1.PromoteAnnotation, asked))
		}
	case !in.leavesPromotionsToUsers():
		d.consume(in, v1alpha1.PromoteAnnotation)
		d.decline(environmentsv1.PromoteNotNeededReason, fmt.Sprintf("%s has no effect: no Environment leaves promotions to users", v1alpha1.PromoteAnnotation))
	case verdictOf(*d, asked) == nil && d.Declined == nil:
		d.Declined = &verdict.Problem{
			Reason: v1alpha1.NoSuchCandidateReason,
			Message: fmt.Sprintf("%s names %s, which is no candidate: it takes effect when it is one",
				v1alpha1.PromoteAnnotation, verdict.Quote(asked)),
		}
	}
}
