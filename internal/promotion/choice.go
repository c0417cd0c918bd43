// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// known is what a step decides by, besides the Input.
type known struct {
	// ledger has the known releases.
	ledger []v1alpha1.VersionInfo
	// rules are what holds a release.
	rules []rule
	// candidates are the newer ones, each with its verdict.
	candidates []Verdict
	// unblocks is true if a user lifts a failure, and there is one.
	unblocks bool
	// problem prevents what a user requests.
	problem *verdict.Problem
}

// choice is what a step decides.
type choice struct {
	Outcome
	// problem prevents anything from being done.
	problem *verdict.Problem
	// resets are the HealthChecks to reset.
	resets []int
	// superseded are candidates that the promoted release is chosen before.
	superseded []Verdict
	// at is when time alone changes the choice; zero means never.
	at time.Time
}

// until sets when time alone changes the choice, if that is earlier than known so far.
func (c choice) until(times ...time.Time) choice {
	for _, at := range times {
		c.at = verdict.Earlier(c.at, at)
	}
	return c
}

// promote promotes the release. What the promotion before it still waited for no longer
// matters: a check that is reset before the release is applied would prove it too early.
func promote(rollout *v1alpha1.Rollout, release v1alpha1.VersionInfo, grounds v1alpha1.Grounds) choice {
	action := Promote
	if rollout.Current().State().Running() {
		action = Supersede
	}
	return choice{Outcome: Outcome{Action: action, Release: release, Grounds: grounds}}
}

// adopt takes over a release that the targets already have.
func adopt(release v1alpha1.VersionInfo, why string) choice {
	return choice{Outcome: Outcome{
		Action: Adopt, Grounds: v1alpha1.GroundsAdopted, Release: release, Reason: v1alpha1.ReleaseAdoptedReason, Message: why + carriedText,
	}}
}

func wait(reason, message string) choice {
	return choice{Outcome: Outcome{Action: Wait, Reason: reason, Message: message}}
}

func fail(cause v1alpha1.FailureCause, failed []v1alpha1.FailedHealthCheck, message string) choice {
	return choice{Outcome: Outcome{Action: FailBake, Reason: v1alpha1.BakeTimeFailedReason, Cause: cause, Failed: failed, Message: message}}
}

// promotedNext promotes the newest eligible candidate.
func promotedNext(in Input, k known) (choice, bool) {
	for i := range k.candidates {
		if k.candidates[i].Eligible() {
			grounds := v1alpha1.GroundsNewest
			if in.Rollout.Spec.ReleaseStrategy == v1alpha1.ReleaseNext {
				grounds = v1alpha1.GroundsNext
			}
			c := promoteAutomatically(in, k, k.candidates[i].Release, grounds)
			c.superseded = k.candidates[i+1:]
			return c, true
		}
	}
	return choice{}, false
}

// promoteAutomatically promotes a release that no user has named as the one to deploy.
func promoteAutomatically(in Input, k known, release v1alpha1.VersionInfo, grounds v1alpha1.Grounds) choice {
	c := promote(in.Rollout, release, grounds)
	c.Lifted = lifted(in, k, release)
	c.Manual = c.hasLifted(v1alpha1.LiftedPromotion)
	c.Reason, c.Message = v1alpha1.EligibleReason, choiceMessage(c.Outcome, in.Policy.Name, in.Upstreams.Unchecked(release), wordsOf(in.Rollout, in.ForeignAnnotations))
	return c
}

// lifted returns which holds a user has lifted for a release that is chosen automatically.
func lifted(in Input, k known, release v1alpha1.VersionInfo) []v1alpha1.LiftedHold {
	var all []v1alpha1.LiftedHold
	if Bypassed(in.Rollout, k.candidates) == release.Tag {
		all = append(all, v1alpha1.LiftedGates)
	}
	if k.unblocks {
		all = append(all, v1alpha1.LiftedFailure)
	}
	upstreams := in.upstreams()
	if upstreams.Bypassed(release) {
		all = append(all, v1alpha1.LiftedUpstreams)
	}
	if upstreams.IsPromoted(release.Tag) {
		all = append(all, v1alpha1.LiftedPromotion)
	}
	return all
}

// needsUnblock reports whether a failure, here or elsewhere, or an unhealthy HealthCheck
// prevents automatic promotion, whether or not there is a candidate at present.
func needsUnblock(in Input, candidates []Verdict) bool {
	if in.Rollout.Current().State() == v1alpha1.BakeFailed || isOverdue(in.Now, in.Rollout, in.Targets) || withinRollbackLimit(in.Rollout) != nil {
		return true
	}
	unwell, failed := nothingUnhealthy(in.Rollout, in.Health) != nil, notFailedBefore(in.Rollout, in.Policy, in.Quarantines)
	held := notQuarantined(in.Rollout, in.Quarantines, in.holding())
	return slices.ContainsFunc(candidates, func(v Verdict) bool { return unwell || failed(v.Release) != nil || held(v.Release) != nil })
}
