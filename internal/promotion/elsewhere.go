// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"slices"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

func holding(now time.Time, policy releases.Policy, quarantines quarantined.Quarantines) quarantined.Holding {
	return quarantines.Holding(policy.Image, now)
}

// IsAbout reports whether a quarantine is about a release of the Rollout.
func IsAbout(in Input, spec *v1alpha1.ReleaseQuarantineSpec, release v1alpha1.VersionInfo) bool {
	return quarantine.Matches(spec, quarantine.Release{Image: in.Policy.Image, Tag: release.Tag, Digest: releases.OrEmpty(release.Digest)})
}

// QuarantinesOn returns the quarantines that hold a release, whether or not the Rollout
// obeys them.
func QuarantinesOn(in Input, release v1alpha1.VersionInfo) []quarantined.Quarantine {
	var all []quarantined.Quarantine
	for i := range in.Quarantines.All {
		if q := &in.Quarantines.All[i]; q.Holds(in.Now) && IsAbout(in, &q.Spec, release) {
			all = append(all, *q)
		}
	}
	return all
}

// notQuarantined checks that no quarantine that the Rollout obeys holds the release. While
// quarantines cannot be read, nobody knows.
func notQuarantined(in Input, release v1alpha1.VersionInfo) *verdict.Hold {
	if !in.Rollout.Spec.Quarantine.Obeys() {
		return nil
	}
	if problem := in.Quarantines.Problem; problem != nil {
		return &verdict.Hold{Reason: problem.Reason, Message: problem.Message}
	}
	return holding(in.Now, in.Policy, in.Quarantines).Held(release)
}

// notRecalled checks that no quarantine holds the release even for users. A Rollout that
// does not obey quarantines obeys these.
func notRecalled(in Input, release v1alpha1.VersionInfo) *verdict.Hold {
	return holding(in.Now, in.Policy, in.Quarantines).Recalled(release)
}

// refused explains why what a user requests is not promoted, or a pinned version is in
// quarantine, and until when that holds; nil if nothing is in the way.
func refused(in Input, ledger []v1alpha1.VersionInfo) (*verdict.Problem, time.Time) {
	wanted := in.Rollout.Pinned()
	if problem := impossible(in.Rollout, ledger); problem != nil || wanted == "" || runsTag(in.Rollout, in.Policy, wanted) {
		return problem, time.Time{}
	}
	hold := notRecalled(in, releases.Known(ledger, wanted))
	if hold == nil {
		return nil, time.Time{}
	}
	return &verdict.Problem{Reason: hold.Reason, Message: hold.Message}, hold.Until
}

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
