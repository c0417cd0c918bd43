// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

// retainForRollback adds the entries that must not be cut if the Rollout goes back by
// itself: what it goes back to, and everything that withinRollbackLimit counts. The entry
// that ends the count is needed only while an older failure stays.
func retainForRollback(now time.Time, policy releases.Policy, quarantines quarantined.Quarantines, history []v1alpha1.DeploymentHistoryEntry, ledger []v1alpha1.VersionInfo, retained []bool) {
	if i, _ := provenIn(now, policy, quarantines, history, ledger); i >= 0 {
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
