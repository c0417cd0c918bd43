// SPDX-License-Identifier: Apache-2.0

package lint

import "fmt"

// strategyPath is the field of a HelmRelease that says when Flux packages a chart again.
var strategyPath = []string{"spec", "chart", "spec", "reconcileStrategy"}

// eachRevision has it packaged again for each commit.
const eachRevision = "Revision"

// checkGitCharts finds HelmReleases that do not show of which commit their chart is.
func checkGitCharts(r *report) {
	r.eachWritten(func(rollout, repository *object) {
		if repository.groupKind() != gitRepositoryKind {
			return
		}
		for _, o := range r.consumers(repository, rollout) {
			if o.groupKind() != helmReleaseKind || !o.consumes(repository) || o.isUnknown(strategyPath...) || o.text(strategyPath...) == eachRevision {
				continue
			}
			r.find(at{o, strategyPath}, fmt.Sprintf("%s does not show which commit of %s it has deployed, so no release of %s counts as applied", o, repository, rollout),
				"set reconcileStrategy: "+eachRevision)
		}
	})
}
