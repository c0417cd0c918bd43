// SPDX-License-Identifier: Apache-2.0

package content

import (
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// LostConsumers returns the repositories that nothing is known to apply any more, while
// the status still has what applied them for the current release. It returns them once:
// the status that follows shows that the last consumer is being deleted, or gone.
func (r Running) LostConsumers() []Target {
	current := r.Rollout.Current()
	if current == nil || r.Targets.Problem != nil || !r.lostConsumer(current.Version.Tag) {
		return nil
	}
	var lost []Target
	for _, t := range r.Targets.All {
		was := t.StoredIn(r.Rollout.Status.Targets, current.Version.Tag)
		if t.PulledOnly && was != nil && was.Reason != v1alpha1.TargetNoConsumer {
			lost = append(lost, t)
		}
	}
	return lost
}

// lostConsumer reports whether the status has a target for a version that is none any more,
// or whose deletion has begun. The status does not say which repository it applied.
func (r Running) lostConsumer(version string) bool {
	return slices.ContainsFunc(r.Rollout.Status.Targets, func(was v1alpha1.TargetStatus) bool {
		return was.Version == version && !isRepository(was.Kind) && was.Reason != v1alpha1.TargetDeleting && !r.Targets.keep(was)
	})
}

// keep reports whether a target of the status is still one, and is to stay.
func (t Targets) keep(was v1alpha1.TargetStatus) bool {
	return slices.ContainsFunc(t.All, func(now Target) bool {
		return now.Kind == was.Kind && now.Namespace == was.Namespace && now.Name == was.Name && now.Reason != v1alpha1.TargetDeleting
	})
}

// isRepository reports whether targets of a kind are applied by others.
func isRepository(kind string) bool { return kind == "OCIRepository" || kind == gitRepository }

// gitRepository is the kind of repositories without image.
const gitRepository = "GitRepository"
