// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

// StateMessage says how the current promotion of a Rollout is doing; empty if that is not
// known. An entry that succeeded while there was no target says that there is nothing to
// deploy. Once there are targets, they are described instead.
func StateMessage(rollout *v1alpha1.Rollout) string {
	entry := rollout.Current()
	switch {
	case entry == nil:
		return ""
	case !hasLateTargets(rollout, entry):
		return releases.OrEmpty(entry.BakeStatusMessage)
	case slices.ContainsFunc(rollout.Status.Targets, isNotApplied):
		return "succeeded before its targets were annotated"
	}
	return "applied; its targets were annotated after it had succeeded"
}

func isNotApplied(t v1alpha1.TargetStatus) bool { return t.State != v1alpha1.TargetApplied }

// hasLateTargets reports whether a promotion succeeded without a target, and the Rollout has
// targets now.
func hasLateTargets(rollout *v1alpha1.Rollout, entry *v1alpha1.DeploymentHistoryEntry) bool {
	withoutTarget := entry.ProvenBy != nil && entry.ProvenBy.Targets == 0
	return entry.State() == v1alpha1.BakeSucceeded && withoutTarget && len(rollout.Status.Targets) > 0
}
