// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// WayOut returns how to continue after the newest history entry has failed, and which
// release is good to go back to.
func WayOut(history []v1alpha1.DeploymentHistoryEntry, policy Policy) string {
	good := lastGood(history, policy)
	if good == "" {
		return "no good release is known; pin another one with spec.wantedVersion, or annotate with retry or unblock-failed"
	}
	return fmt.Sprintf("last good release: %s; roll back with spec.wantedVersion, or annotate with retry or unblock-failed",
		truncate.Text(good, longestOfOld))
}

// lastGood returns the release that succeeded last, and that has neither failed nor been
// withdrawn from the registry since; empty if the history has none. It never returns the
// tag of the failed release, even if that tag succeeded earlier: a pin of that tag brings
// back the content that failed.
func lastGood(history []v1alpha1.DeploymentHistoryEntry, policy Policy) string {
	failed, withdrawn := map[string]bool{}, policy.withdrawn()
	for i := range history {
		tag := history[i].Version.Tag
		switch state := history[i].State(); {
		case i == 0 || state == v1alpha1.BakeFailed:
			failed[tag] = true
		case state == v1alpha1.BakeSucceeded && !failed[tag] && !withdrawn(tag):
			return tag
		}
	}
	return ""
}
