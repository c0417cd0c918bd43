// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// recovery explains why the promotion of this decision cannot fail; nil if it can. The
// release that it replaces is already broken. If this way out were reported as a failure,
// that would only block the next one.
func recovery(in Input, o Outcome) *verdict.Note {
	previous := in.Rollout.Current()
	why := v1alpha1.Recovery("")
	switch {
	case o.Action == Adopt:
	case needsRecovery(previous), previous.IsRollback() && (isOverdue(in.Now, in.Rollout, in.Targets) || o.Reason == v1alpha1.TagMovedReason):
		why = v1alpha1.RecoveryFromFailure
	case o.Manual && len(evidence.Unhealthy(in.Health.Checks)) > 0:
		why = v1alpha1.RecoveryWhileUnhealthy
	}
	if why == "" {
		return nil
	}
	return &verdict.Note{Reason: string(why), Message: recoveryMessage(why, o.Release.Tag, previous)}
}

// needsRecovery reports whether what replaces the promotion is the way out of a failure.
func needsRecovery(previous *v1alpha1.DeploymentHistoryEntry) bool {
	return previous.State() == v1alpha1.BakeFailed
}
