// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

// runsTag reports whether the current release has that tag, and is one of the image of the
// policy.
func runsTag(rollout *v1alpha1.Rollout, policy releases.Policy, tag string) bool {
	current := rollout.Current()
	return current != nil && current.Version.Tag == tag && !policy.IsOfAnother(current)
}
