// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
)

// consumed adds what is known to apply each OCIRepository to what was observed of the
// targets that were found. The content that they have pulled was compared before: what
// applies an OCIRepository is said only of one that has pulled the release.
func (g Gatherer) consumed(s *Snapshot, found []targets.Target, seen []content.Target) []content.Target {
	all := make([]content.Target, 0, len(seen))
	for i, t := range found {
		all = append(all, g.asRecorded(s, t, t.Consumed(seen[i], found, g.HelmReleases)))
	}
	return all
}

// asRecorded repeats what the status shows of consumers in other namespaces, if only the
// controller reads these.
func (g Gatherer) asRecorded(s *Snapshot, t targets.Target, seen content.Target) content.Target {
	if !g.OneNamespace || seen.State != v1alpha1.TargetApplied || len(t.Elsewhere) > 0 {
		return seen
	}
	was := seen.StoredIn(s.Rollout.Status.Targets, s.release().Tag)
	if was != nil && was.Reason == v1alpha1.TargetConsumerElsewhere {
		seen.Reason, seen.Message = was.Reason, was.Message
	}
	return seen
}
