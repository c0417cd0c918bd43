// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"strings"

	"github.com/Masterminds/semver/v3"
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// commitUnknown returns why nothing shows which commit a HelmRelease has deployed whose chart
// is in a GitRepository of the Rollout. By default, Flux packages the chart again only for
// another version in Chart.yaml, and the status has nothing but that version.
func (t Target) commitUnknown(rollout *v1alpha1.Rollout) observation {
	if !t.sourceIsOf(rollout) || !IsGit(t.Source) || t.HelmRelease.Spec.Chart.Spec.ReconcileStrategy == sourcev1.ReconcileStrategyRevision {
		return observation{}
	}
	return conflict(v1alpha1.TargetCommitUnknown, "takes its chart from GitRepository %s, and its status does not show of which commit: "+
		"set spec.chart.spec.reconcileStrategy to %s", t.Source.GetName(), sourcev1.ReconcileStrategyRevision)
}

// shortCommit is how many characters of a commit Flux adds to the version of a chart.
const shortCommit = 12

// triedCommit reports whether helm-controller's last attempt was for the HelmRelease's
// generation, and with the chart of a revision, <tag>@<algorithm>:<commit>. The version of
// that chart ends with +<commit>, and with .<generation> after it if there are values files.
func triedCommit(h *helmv2.HelmRelease, revision string) bool {
	chart, err := semver.NewVersion(h.Status.LastAttemptedRevision)
	if err != nil || h.Status.LastAttemptedGeneration != h.Generation {
		return false
	}
	packaged, _, _ := strings.Cut(chart.Metadata(), ".")
	commit := revision[strings.LastIndexByte(revision, ':')+1:]
	return len(packaged) == shortCommit && strings.HasPrefix(commit, packaged)
}
