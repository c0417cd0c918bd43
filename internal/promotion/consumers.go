// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// LostConsumers returns the OCIRepositories that nothing is known to apply any more, while
// the status still has what applied them for the current release.
func (in Input) LostConsumers() []Target {
	current := in.Rollout.Current()
	if current == nil || in.Targets.Problem != nil || !in.lostConsumer(current.Version.Tag) {
		return nil
	}
	var lost []Target
	for _, t := range in.Targets.All {
		was := t.StoredIn(in.Rollout.Status.Targets, current.Version.Tag)
		if t.PulledOnly && was != nil && was.Reason != v1alpha1.TargetNoConsumer {
			lost = append(lost, t)
		}
	}
	return lost
}

// lostConsumer reports whether the status has a target for a version that is none any
// more. The status does not say which OCIRepository it applied.
func (in Input) lostConsumer(version string) bool {
	return slices.ContainsFunc(in.Rollout.Status.Targets, func(was v1alpha1.TargetStatus) bool {
		return was.Version == version && was.Kind != repositoryKind && !slices.ContainsFunc(in.Targets.All, func(t Target) bool {
			return t.Kind == was.Kind && t.Namespace == was.Namespace && t.Name == was.Name
		})
	})
}

// repositoryKind is the kind of the targets that others apply.
const repositoryKind = "OCIRepository"
