// SPDX-License-Identifier: Apache-2.0

package approvals

import (
	"slices"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Case is a promotion that gates ask about.
type Case struct {
	// Now is the time of the decision.
	Now time.Time
	// Rollout is the object as it was read, including its history.
	Rollout *v1alpha1.Rollout
	// Release is what is promoted.
	Release v1alpha1.VersionInfo
	// Older is true if the release is older than what runs: the history may not have it any more.
	Older bool
	// Forgotten is true if the history was lost, or is older than the targets: it does not say
	// which decisions were used.
	Forgotten bool
	// Manual is true if a user pins or forces it.
	Manual bool
	// Requested is true if a user asked for this release: by a pin, a force, a promotion or a
	// bypass of gates.
	Requested bool
	// Requester is the user who asked for it; empty if the API server does not vouch for the
	// name.
	Requester string
}

// about returns the decisions on the release that no gate has to leave out, and those that do
// not count because they were made before names were checked. A decision on other content is
// among them, because gates say so.
func (a Approvals) about(c Case) (counting, unchecked []v1alpha1.RolloutApproval) {
	for _, given := range a.Given {
		switch {
		case given.Spec.Version != c.Release.Tag, !isOf(&given, c.Rollout), c.hasUsed(&given):
		case a.Identity.vouchesFor(&given):
			counting = append(counting, given)
		default:
			unchecked = append(unchecked, given)
		}
	}
	slices.SortFunc(counting, newestFirst)
	slices.SortFunc(unchecked, newestFirst)
	return counting, unchecked
}

// vouchesFor reports whether the name in a decision was checked when it was made.
func (i Identity) vouchesFor(given *v1alpha1.RolloutApproval) bool {
	return i.Since.IsZero() || given.CreationTimestamp.After(i.Since)
}

// isOf reports whether a decision is about this Rollout, and not about an earlier one by the
// same name.
func isOf(given *v1alpha1.RolloutApproval, rollout *v1alpha1.Rollout) bool {
	uid := given.Spec.RolloutRef.UID
	return (uid == "" || uid == rollout.UID) && !given.CreationTimestamp.Before(&rollout.CreationTimestamp)
}

// hasUsed reports whether a decision has let a promotion go. One that is not younger than the
// newest promotion of its version counts as used too: a version that has failed needs new
// approvals, even if another client has removed from the history who gave the old ones.
func (c Case) hasUsed(given *v1alpha1.RolloutApproval) bool {
	history := c.Rollout.Status.History
	if given.Spec.Decision == v1alpha1.DecisionReject || len(history) == 0 {
		return false
	}
	for i := range history {
		entry := &history[i]
		if uses(entry, given.UID) || entry.Version.Tag == given.Spec.Version && !isYounger(given, entry) {
			return true
		}
	}
	return c.mayHaveForgotten(given)
}

// mayHaveForgotten reports whether a promotion that the history does not have may have used up a
// decision. Entries of older releases are removed in the end. A history that begins with what
// ran already, or with the choice of a user, may follow one that was lost.
func (c Case) mayHaveForgotten(given *v1alpha1.RolloutApproval) bool {
	history := c.Rollout.Status.History
	afterALoss := []v1alpha1.Grounds{v1alpha1.GroundsPinned, v1alpha1.GroundsForced}
	first := &history[len(history)-1]
	return (c.Older || slices.Contains(afterALoss, first.Grounds)) && !isYounger(given, first) ||
		slices.ContainsFunc(history, func(e v1alpha1.DeploymentHistoryEntry) bool {
			return e.Grounds == v1alpha1.GroundsAdopted && !isYounger(given, &e)
		})
}

func isYounger(given *v1alpha1.RolloutApproval, entry *v1alpha1.DeploymentHistoryEntry) bool {
	return given.CreationTimestamp.After(entry.Timestamp.Time)
}

// newestFirst orders decisions. Of two in the same second, a rejection is the newer one.
func newestFirst(a, b v1alpha1.RolloutApproval) int {
	if order := b.CreationTimestamp.Compare(a.CreationTimestamp.Time); order != 0 {
		return order
	}
	if rejects := a.Spec.Decision == v1alpha1.DecisionReject; rejects != (b.Spec.Decision == v1alpha1.DecisionReject) {
		if rejects {
			return -1
		}
		return 1
	}
	return strings.Compare(a.Name, b.Name)
}

// serviceAccounts is how the names of ServiceAccounts begin. RBAC calls them so.
const serviceAccounts = "system:serviceaccount:"

// accepts reports whether a gate lets a user decide at all. A ServiceAccount must be listed:
// one that applies what anybody commits would approve all of it.
func (g Gate) accepts(username string) bool {
	account, ok := strings.CutPrefix(username, serviceAccounts)
	return !ok || slices.Contains(g.Asks.ServiceAccounts, strings.Replace(account, ":", "/", 1))
}
