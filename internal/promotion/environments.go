// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"slices"
	"strings"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// forUpstreams returns what the Environments of the Rollout have to know of it.
func (in Input) forUpstreams() upstream.Rollout {
	return upstream.Rollout{
		Now: in.Now, Order: in.Policy.Order, Current: in.Rollout.Current(), HasReason: hasReason(in.Rollout, in.ForeignAnnotations),
		Bypassed: in.Rollout.Annotations[v1alpha1.BypassGatesAnnotation], Promoted: in.Rollout.Annotations[v1alpha1.PromoteAnnotation],
	}
}

// provenUpstream checks that the environments before this one have proven the release.
func provenUpstream(in Input, release v1alpha1.VersionInfo) *verdict.Hold {
	return in.Upstreams.Proven(in.forUpstreams(), release)
}

// promotedByAPerson checks that a user has promoted the release, where an Environment
// leaves that to users.
func promotedByAPerson(in Input, release v1alpha1.VersionInfo) *verdict.Hold {
	return in.Upstreams.PromotedByAPerson(in.forUpstreams(), release)
}

// byItself are the beginnings of messages that kuberik's dashboard writes by itself, next to a
// pin and when it removes one. Nobody has given them as a reason.
var byItself = []string{"Cleared version pin", "Pinned to version "}

// hasReason reports whether a user says why the release goes past an Environment.
func hasReason(rollout *v1alpha1.Rollout, foreign map[string]bool) bool {
	why := words(rollout, foreign, v1alpha1.DeployMessageAnnotation)
	return why != "" && !slices.ContainsFunc(byItself, func(text string) bool { return strings.HasPrefix(why, text) })
}
