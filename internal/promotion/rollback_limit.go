// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// withinRollbackLimit checks that not too many promotions have failed one after another.
// Something other than the releases may be broken then, and each try costs an outage.
func withinRollbackLimit(in Input, _ v1alpha1.VersionInfo) *Hold {
	if !in.Rollout.Spec.RollsBack() {
		return nil
	}
	failures, most := consecutiveFailures(in.Rollout.Status.History), in.Rollout.Spec.Rollback.GetMaxConsecutive()
	if failures < most {
		return nil
	}
	return &Hold{
		Reason: v1alpha1.RollbackLimitReason,
		Message: fmt.Sprintf("%s failed in a row, and spec.rollback.maxConsecutive is %d; to go on, pin a version, or annotate the Rollout with unblock-failed",
			Count(failures, "promotion"), most),
	}
}

// consecutiveFailures counts the promotions that have failed since one succeeded, or since
// a user took part. Rollbacks do not count.
func consecutiveFailures(history []v1alpha1.DeploymentHistoryEntry) int {
	failures, _ := failuresInARow(history)
	return len(failures)
}

// failuresInARow returns the indices of these promotions, and of the one that ends them:
// the length of the history if there is none.
func failuresInARow(history []v1alpha1.DeploymentHistoryEntry) (failures []int, end int) {
	for i := range history {
		switch entry := &history[i]; {
		case entry.IsRollback():
		case entry.State() == v1alpha1.BakeSucceeded, !isAutomatic(entry):
			return failures, i
		case entry.State() == v1alpha1.BakeFailed:
			failures = append(failures, i)
		}
	}
	return failures, len(history)
}

// retainForRollback adds the entries that must not be cut if the Rollout goes back by
// itself: what it goes back to, and everything that withinRollbackLimit counts. The entry
// that ends the count is needed only while an older failure stays.
func retainForRollback(in Input, history []v1alpha1.DeploymentHistoryEntry, ledger []v1alpha1.VersionInfo, retained []bool) {
	if i := provenIn(history, ledger, in.Policy); i >= 0 {
		retained[i] = true
	}
	failures, end := failuresInARow(history)
	for _, i := range failures {
		retained[i] = true
	}
	for i := end + 1; i < len(history); i++ {
		if retained[i] && history[i].State() == v1alpha1.BakeFailed {
			retained[end] = true
		}
	}
}

// candidatesAfterRollback returns the tags that rollbacks can make candidates: everything
// newer than the oldest release, in the policy's order, that the history can go back to.
func candidatesAfterRollback(ledger []v1alpha1.VersionInfo, history []v1alpha1.DeploymentHistoryEntry, order Order) map[string]bool {
	oldest := -1
	for i := range history {
		if history[i].State() != v1alpha1.BakeSucceeded || positionOf(ledger, history[i:i+1], order) == "" {
			continue
		}
		if oldest < 0 || isOlder(ledger, history[i].Version.Tag, history[oldest].Version.Tag, order) {
			oldest = i
		}
	}
	if oldest < 0 {
		return nil
	}
	return TagsOf(Candidates(ledger, history[oldest:oldest+1], order))
}

// isOlder reports whether tag a is older than tag b, in the policy's order or else in the
// order in which they appeared.
func isOlder(ledger []v1alpha1.VersionInfo, a, b string, order Order) bool {
	return order.place(b).isNewer(order.place(a), lastIndex(ledger, a) < lastIndex(ledger, b))
}

// isAutomatic reports whether an entry was made without the help of a user.
func isAutomatic(entry *v1alpha1.DeploymentHistoryEntry) bool {
	if entry.TriggeredBy == nil || entry.TriggeredBy.Kind != v1alpha1.TriggeredBySystem || entry.Message == nil {
		return false
	}
	chosen := slices.ContainsFunc(automaticGrounds, func(text string) bool { return strings.HasPrefix(*entry.Message, text) })
	return (chosen || strings.Contains(*entry.Message, pushedAgain)) && !strings.Contains(*entry.Message, pastFailure)
}
