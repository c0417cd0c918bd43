// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

// isAutomatic reports whether an entry was made without the help of a user.
func isAutomatic(entry *v1alpha1.DeploymentHistoryEntry) bool {
	switch entry.Grounds {
	case v1alpha1.GroundsNewest, v1alpha1.GroundsNext, v1alpha1.GroundsFirst, v1alpha1.GroundsMoved:
		return !entry.HasLifted(v1alpha1.LiftedFailure) && !entry.HasLifted(v1alpha1.LiftedPromotion)
	case v1alpha1.GroundsPinned, v1alpha1.GroundsForced, v1alpha1.GroundsAdopted, v1alpha1.GroundsRollback:
	}
	return false
}

// WithFacts returns the Rollout with the facts of its history. Clients that do not know
// the fields grounds, lifted, recovery, cause and rollback remove them when they write the
// status. The Rollout itself is not changed.
func WithFacts(rollout *v1alpha1.Rollout) *v1alpha1.Rollout {
	if !slices.ContainsFunc(rollout.Status.History, lacksFacts) {
		return rollout
	}
	next := *rollout
	next.Status.History = slices.Clone(rollout.Status.History)
	for i := range next.Status.History {
		if lacksFacts(next.Status.History[i]) {
			restoreFacts(&next.Status.History[i], next.Status.History[i+1:])
		}
	}
	return &next
}

// lacksFacts reports whether another client has written the entry.
func lacksFacts(entry v1alpha1.DeploymentHistoryEntry) bool { return entry.Grounds == "" }

// restoreFacts fills in what is known of an entry without the fields. One that this
// controller has not written stays as it is.
func restoreFacts(entry *v1alpha1.DeploymentHistoryEntry, older []v1alpha1.DeploymentHistoryEntry) {
	var before *v1alpha1.DeploymentHistoryEntry
	if len(older) > 0 {
		before = &older[0]
	}
	grounds, lifted := groundsOf(entry, before)
	if grounds == "" {
		return
	}
	entry.Grounds, entry.Lifted = grounds, lifted
	entry.AppliedTime = entry.BakeStartTime // it was applied by then, at the latest
	if grounds == v1alpha1.GroundsRollback && entry.Rollback == nil {
		entry.Rollback = rollbackOf(before, nil)
	}
	if before.State() == v1alpha1.BakeFailed && grounds != v1alpha1.GroundsAdopted {
		entry.Recovery = v1alpha1.RecoveryFromFailure
	}
	if entry.Cause == "" && entry.State() == v1alpha1.BakeFailed {
		entry.Cause = causeWithoutField(entry)
	}
}

// rollbackOf says in the history what a rollback is about. The entry that it goes back to
// is nil if it is not known.
func rollbackOf(failed, to *v1alpha1.DeploymentHistoryEntry) *v1alpha1.RollbackRecord {
	return &v1alpha1.RollbackRecord{From: failed.Version.Tag, FromID: failed.IDOrZero(), ToID: to.IDOrZero()}
}

// groundsOf returns why an entry without the field was made, and what a user lifted for it;
// empty if this controller has not written it. Only this function and causeWithoutField
// read messages of this controller: they are all that other clients keep.
func groundsOf(entry, before *v1alpha1.DeploymentHistoryEntry) (v1alpha1.Grounds, []v1alpha1.LiftedHold) {
	message := releases.OrEmpty(entry.Message)
	switch bySystem := entry.TriggeredBy != nil && entry.TriggeredBy.Kind == v1alpha1.TriggeredBySystem; {
	case message == pinnedText:
		return v1alpha1.GroundsPinned, nil
	case message == forcedText:
		return v1alpha1.GroundsForced, nil
	case !bySystem:
		return "", nil
	case before.State() == v1alpha1.BakeFailed && strings.HasPrefix(message, rolledBackFrom+nameOf(before)):
		return v1alpha1.GroundsRollback, nil
	case strings.Contains(message, content.PushedAgain):
		return v1alpha1.GroundsMoved, nil
	case strings.HasSuffix(message, carriedText):
		return v1alpha1.GroundsAdopted, nil
	}
	return automaticGroundsOf(message)
}

func automaticGroundsOf(message string) (v1alpha1.Grounds, []v1alpha1.LiftedHold) {
	var lifted []v1alpha1.LiftedHold
	for _, hold := range liftable {
		if strings.Contains(message, liftedText(hold)) {
			lifted = append(lifted, hold)
		}
	}
	for _, grounds := range automatic {
		if strings.HasPrefix(message, groundsText(grounds)) {
			return grounds, lifted
		}
	}
	return "", nil
}

// causeWithoutField returns the cause of a failure that has lost it. In doubt, nothing is
// known to be wrong with the release.
func causeWithoutField(entry *v1alpha1.DeploymentHistoryEntry) v1alpha1.FailureCause {
	if len(entry.FailedHealthChecks) == 0 || strings.HasPrefix(releases.OrEmpty(entry.BakeStatusMessage), atDeadline) {
		return v1alpha1.CauseDeployTimeout
	}
	return v1alpha1.CauseHealthCheckFailed
}

// causeOf returns the cause of a failure, also of one that another controller recorded: of
// its release nothing is known to be wrong.
func causeOf(entry *v1alpha1.DeploymentHistoryEntry) v1alpha1.FailureCause {
	return cmp.Or(entry.Cause, v1alpha1.CauseDeployTimeout)
}
