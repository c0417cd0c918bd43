// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// withinRollbackLimit checks that not too many promotions have failed one after another.
// Something other than the releases may be broken then, and each try costs an outage.
func withinRollbackLimit(rollout *v1alpha1.Rollout) *verdict.Hold {
	if !rollout.Spec.RollsBack() {
		return nil
	}
	failed, _ := failuresInARow(rollout.Status.History)
	failures, most := len(failed), rollout.Spec.Rollback.GetMaxConsecutive()
	if failures < most {
		return nil
	}
	return &verdict.Hold{
		Reason: v1alpha1.RollbackLimitReason,
		Message: fmt.Sprintf("%s failed in a row, and spec.rollback.maxConsecutive is %d; to continue, pin a version, or annotate the Rollout with unblock-failed",
			verdict.Count(failures, "promotion"), most),
	}
}

// failuresInARow returns the indices of the promotions that have failed since one succeeded,
// or since a user took part, and of the one that ends them: the length of the history if
// there is none. Rollbacks do not count.
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
func retainForRollback(policy releases.Policy, bad quarantined.Holding, history []v1alpha1.DeploymentHistoryEntry, ledger []v1alpha1.VersionInfo, retained []bool) {
	if i, _ := provenIn(policy, bad, history, ledger); i >= 0 {
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
