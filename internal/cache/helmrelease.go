// SPDX-License-Identifier: Apache-2.0

package cache

import (
	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
)

// trimHelmRelease removes the values and the inventory, and keeps only the newest version
// of the history. HelmReleases without an OCIRepository as chart source are not read. For
// those, only their existence is kept.
func trimHelmRelease(h *helmv2.HelmRelease) {
	h.ManagedFields = nil
	trimMetadata(h)
	if _, ok := targets.ChartOf(h); !ok {
		h.Spec, h.Status = helmv2.HelmReleaseSpec{}, helmv2.HelmReleaseStatus{}
		return
	}
	spec := helmv2.HelmReleaseSpec{ChartRef: h.Spec.ChartRef, Suspend: h.Spec.Suspend, WaitStrategy: h.Spec.WaitStrategy}
	if h.GetInstall().DisableWait {
		spec.Install = &helmv2.Install{DisableWait: true}
	}
	if h.GetUpgrade().DisableWait {
		spec.Upgrade = &helmv2.Upgrade{DisableWait: true}
	}
	status := helmv2.HelmReleaseStatus{
		ObservedGeneration: h.Status.ObservedGeneration, Conditions: readConditions(h.Status.Conditions),
		LastAttemptedGeneration:     h.Status.LastAttemptedGeneration,
		LastAttemptedRevision:       h.Status.LastAttemptedRevision,
		LastAttemptedRevisionDigest: h.Status.LastAttemptedRevisionDigest,
	}
	if newest := targets.NewestSnapshot(h); newest != nil {
		status.History = helmv2.Snapshots{{Status: newest.Status, ChartVersion: newest.ChartVersion, OCIDigest: newest.OCIDigest}}
	}
	h.Spec, h.Status = spec, status
}
