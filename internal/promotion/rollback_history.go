// SPDX-License-Identifier: Apache-2.0

package promotion

import "github.com/fluxrollouts/rollout-controller/api/v1alpha1"

// retainForRollback adds the entries that must not be cut if the Rollout goes back by
// itself: what it goes back to, and everything that withinRollbackLimit counts. The entry
// that ends the count is needed only while an older failure stays.
func retainForRollback(in Input, history []v1alpha1.DeploymentHistoryEntry, ledger []v1alpha1.VersionInfo, retained []bool) {
	if i, _ := provenIn(in, history, ledger); i >= 0 {
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
func candidatesAfterRollback(ledger []v1alpha1.VersionInfo, history []v1alpha1.DeploymentHistoryEntry, policy Policy) map[string]bool {
	oldest := -1
	for i := range history {
		if history[i].State() != v1alpha1.BakeSucceeded || positionOf(ledger, history[i:i+1], policy).entry == nil {
			continue
		}
		if oldest < 0 || isOlder(ledger, history[i].Version, history[oldest].Version, policy.Order) {
			oldest = i
		}
	}
	if oldest < 0 {
		return nil
	}
	return TagsOf(Candidates(ledger, history[oldest:oldest+1], policy))
}

// isOlder reports whether release a comes before release b, in the policy's order or else
// in the order in which they appeared.
func isOlder(ledger []v1alpha1.VersionInfo, a, b v1alpha1.VersionInfo, order Order) bool {
	if order.Kind() == ByAppearance {
		return lastIndex(ledger, a.Tag) < lastIndex(ledger, b.Tag)
	}
	return order.placed(asListed(ledger, a)).inList(order.placed(asListed(ledger, b))) < 0
}
