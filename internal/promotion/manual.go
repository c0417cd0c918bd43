// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// chosenManually promotes the release that a user requests, unless it is already the
// current one: any tag that is pinned, or a known release that is forced.
func chosenManually(in Input, k known) (choice, bool) {
	wanted, history := in.Policy.Chosen(in.Rollout), in.Rollout.Status.History
	// An outdated history may have been restored with the choice: it counts anew once a user confirms it.
	confirmed := in.Targets.Outdate(history) && in.Rollout.AsksToAdopt()
	if k.problem != nil || wanted == "" || in.Policy.IsDeployed(history, releases.Name(wanted)) && !confirmed {
		return choice{}, false
	}
	release := chosenRelease(in, wanted, k.ledger)
	if len(holdsPast(k.rules, in.Rollout, release, chosen)) > 0 {
		return choice{}, false
	}
	c := promote(in.Rollout, release, v1alpha1.GroundsPinned)
	c.Manual, c.Reason, c.Message = true, v1alpha1.PinnedReason, pinnedText
	if in.Rollout.Pinned() == "" {
		c.Grounds, c.Reason, c.Message = v1alpha1.GroundsForced, v1alpha1.ForcedReason, forcedText
		if in.upstreams().Opposes(release) {
			c.Lifted = []v1alpha1.LiftedHold{v1alpha1.LiftedUpstreams}
		}
	}
	return c, true
}

// chosenRelease returns the release that a user names. If gates ask for approvals, it has the
// digest from the registry: Flux may not report the tag.
func chosenRelease(in Input, name string, ledger []v1alpha1.VersionInfo) v1alpha1.VersionInfo {
	release := releases.Name(name).In(ledger)
	if len(in.Gates.asking()) > 0 && release.Digest == nil {
		release = in.registry().Completed(release)
	}
	return release
}

// awaited returns the release that a user chose, and what approvals it waits for; nil if it
// does not wait.
func awaited(in Input, ledger []v1alpha1.VersionInfo) *Verdict {
	people, wanted := in.approving(), in.Policy.Chosen(in.Rollout)
	if len(people.gates) == 0 || wanted == "" || impossible(in.Rollout, in.Policy, ledger) != nil || in.Policy.IsDeployed(in.Rollout.Status.History, releases.Name(wanted)) {
		return nil
	}
	release := chosenRelease(in, wanted, ledger)
	hold := everyApprovalGiven(people)(release)
	if hold == nil {
		return nil
	}
	return &Verdict{Release: release, Holds: []verdict.Hold{*hold}}
}

// Backward reports whether a user promotes a release that the policy's order ranks older
// than the current one. If the order cannot compare them, the one that appeared earlier
// is older.
func (d Decision) Backward(in Input) bool {
	current := in.Rollout.Current()
	if !d.Manual || current == nil || in.Policy.IsOfAnother(current) {
		return false
	}
	if in.Policy.Order.Kind() == releases.ByAppearance {
		at := releases.LastIndex(d.Ledger, d.Release.Tag)
		return at >= 0 && at < releases.LastIndex(d.Ledger, current.Version.Tag)
	}
	return in.Policy.Order.Relation(d.Release, releases.AsListed(d.Ledger, current.Version)) == releases.Older
}

// refused explains why what a user requests is not promoted, or a pinned version is in
// quarantine, and until when that holds; nil if nothing is in the way.
func refused(in Input, ledger []v1alpha1.VersionInfo) (*verdict.Problem, time.Time) {
	wanted := in.Rollout.Pinned()
	if problem := impossible(in.Rollout, in.Policy, ledger); problem != nil || wanted == "" || in.Policy.IsDeployed(in.Rollout.Status.History, releases.Name(wanted)) {
		return problem, time.Time{}
	}
	hold := in.holding().Recalled(releases.Name(wanted).In(ledger))
	if hold == nil {
		return nil, time.Time{}
	}
	return &verdict.Problem{Reason: hold.Reason, Message: hold.Message}, hold.Until
}

// retried re-evaluates the failed current release if a user requests it.
func retried(in Input, _ known) (choice, bool) {
	if !has(in.Rollout, v1alpha1.RetryAnnotation) || in.Rollout.Current().State() != v1alpha1.BakeFailed {
		return choice{}, false
	}
	return choice{Outcome: Outcome{Action: Retry, Reason: v1alpha1.RetryRequestedReason, Message: "a retry was requested"}}, true
}

func has(rollout *v1alpha1.Rollout, annotation string) bool {
	_, ok := rollout.Annotations[annotation]
	return ok
}
