// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// chosenManually promotes the release that a user requests, unless it is already the
// current one: any tag that is pinned, or a known release that is forced.
func chosenManually(in Input, k known) (choice, bool) {
	wanted := in.Rollout.ChosenManually()
	if k.problem != nil || wanted == "" || isFollowed(in.Rollout, in.Policy, in.Targets, wanted) {
		return choice{}, false
	}
	release := releases.Known(k.ledger, wanted)
	if len(holdsPast(k.rules, in.Rollout, release, chosen)) > 0 {
		return choice{}, false
	}
	c := promote(in.Rollout, release, v1alpha1.GroundsPinned)
	c.Manual, c.Reason, c.Message = true, v1alpha1.PinnedReason, pinnedText
	if in.Rollout.Pinned() == "" {
		c.Grounds, c.Reason, c.Message = v1alpha1.GroundsForced, v1alpha1.ForcedReason, forcedText
		if slices.ContainsFunc(in.Upstreams.Environments, func(e upstream.Environment) bool { return e.Holds(in.forUpstreams(), release) != nil }) {
			c.Lifted = []v1alpha1.LiftedHold{v1alpha1.LiftedUpstreams}
		}
	}
	return c, true
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

// impossible explains why the release that a user requests cannot be promoted; nil if it
// can.
func impossible(rollout *v1alpha1.Rollout, ledger []v1alpha1.VersionInfo) *verdict.Problem {
	pinned, forced := rollout.Pinned(), rollout.Forced()
	switch {
	case pinned != "" && !releases.IsTag(pinned):
		return &verdict.Problem{
			Reason:  v1alpha1.InvalidWantedVersionReason,
			Message: "spec.wantedVersion " + verdict.Quote(pinned) + " cannot be a tag in an OCI registry: correct or remove it",
		}
	case pinned == "" && forced != "" && !(releases.IsTag(forced) && releases.Contains(ledger, forced)):
		return &verdict.Problem{
			Reason: v1alpha1.UnknownReleaseReason,
			Message: fmt.Sprintf("%s names %s, which is not a known release: correct or remove it, or set spec.wantedVersion",
				v1alpha1.ForceDeployAnnotation, verdict.Quote(forced)),
		}
	}
	return nil
}

// retried re-evaluates the failed current release if a user requests it.
func retried(in Input, _ known) (choice, bool) {
	if !has(in.Rollout, v1alpha1.RetryAnnotation) || in.Rollout.Current().State() != v1alpha1.BakeFailed {
		return choice{}, false
	}
	return choice{Outcome: Outcome{Action: Retry, Reason: v1alpha1.RetryRequestedReason, Message: "a retry was requested"}}, true
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

// Bypassed returns the candidate that a user lets go past the gates; empty if there is
// none.
func Bypassed(rollout *v1alpha1.Rollout, candidates []Verdict) string {
	if candidate := verdictOf(candidates, rollout.Annotations[v1alpha1.BypassGatesAnnotation]); candidate != nil {
		return candidate.Release.Tag
	}
	return ""
}

func has(rollout *v1alpha1.Rollout, annotation string) bool {
	_, ok := rollout.Annotations[annotation]
	return ok
}

// triggeredBy returns the user who claims to have caused a manual promotion. For all
// other promotions it returns the controller.
func triggeredBy(rollout *v1alpha1.Rollout, foreign map[string]bool, o Outcome) v1alpha1.TriggeredBy {
	if user := words(rollout, foreign, v1alpha1.DeployUserAnnotation); o.Manual && user != "" {
		return v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredByUser, Name: truncate.Text(user, verdict.LongestName)}
	}
	return v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredBySystem, Name: SystemName}
}

// words returns the text that a user gave for this choice in an annotation.
func words(rollout *v1alpha1.Rollout, foreign map[string]bool, annotation string) string {
	if foreign[annotation] {
		return ""
	}
	return strings.TrimSpace(rollout.Annotations[annotation])
}

func requestDigest(rollout *v1alpha1.Rollout, foreign map[string]bool) string {
	return RequestDigest(words(rollout, foreign, v1alpha1.DeployUserAnnotation), words(rollout, foreign, v1alpha1.DeployMessageAnnotation))
}

// RequestDigest identifies the user name and the message for a choice. It is empty if both
// are.
func RequestDigest(user, message string) string {
	if user == "" && message == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(user + "\x00" + message))
	return hex.EncodeToString(sum[:8])
}
