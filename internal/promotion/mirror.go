// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// mostMirrored is how many versions the mirror gate lets through: the newest ones.
const mostMirrored = 100

// MirrorName returns the name of the gate that mirrors holds of a Rollout.
func MirrorName(rollout *v1alpha1.Rollout) string {
	return truncate.Name(rollout.Name+"-holds", truncate.LongestName)
}

// Mirrored returns the versions that a gate would let through that stood for the holds that
// clients cannot see that know only gates, newest first. It is nil if there are no such holds:
// then no gate is needed.
func Mirrored(candidates []Verdict) []string {
	if !slices.ContainsFunc(candidates, hidden) {
		return nil
	}
	free := []string{}
	for _, candidate := range candidates {
		if !hidden(candidate) && len(free) < mostMirrored {
			free = append(free, candidate.Release.Tag)
		}
	}
	return free
}

func hidden(v Verdict) bool { return v.heldFor(verdict.IsUnknownToOthers) }

// mirror returns the gate as the status shows it.
func mirror(rollout *v1alpha1.Rollout, free []string) *v1alpha1.RolloutGate {
	gate := &v1alpha1.RolloutGate{}
	gate.Name, gate.Spec.AllowedVersions = MirrorName(rollout), &free
	return gate
}
