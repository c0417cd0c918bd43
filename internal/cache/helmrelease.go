// SPDX-License-Identifier: Apache-2.0

package cache

import (
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
)

// trimHelmRelease removes the inventory and the values, except those that Rollouts write,
// and keeps only the newest version of the history. Of HelmReleases that no Rollout
// writes and whose chart is in no OCIRepository, GitRepository or ExternalArtifact, only their
// existence is kept.
func trimHelmRelease(h *helmv2.HelmRelease) {
	targets.KeepOwnFields(h)
	written := len(targets.RolloutsOf(h)) > 0
	_, charted := targets.ChartOf(h)
	_, takesArtifact := targets.ArtifactOf(h)
	switch {
	case written:
		lastHandled := trimTarget(h, h.Status.LastHandledReconcileAt)
		targets.KeepWrittenValues(h)
		trimHelm(h)
		h.Status.LastHandledReconcileAt = lastHandled
	case charted, takesArtifact:
		trimMetadata(h)
		trimHelm(h)
		forgetValues(h)
	default:
		h.ManagedFields = nil
		trimMetadata(h)
		h.Spec, h.Status = helmv2.HelmReleaseSpec{}, helmv2.HelmReleaseStatus{}
	}
}

// trimHelm keeps what shows how far helm-controller is with the chart and the values.
func trimHelm(h *helmv2.HelmRelease) {
	spec := helmv2.HelmReleaseSpec{
		ChartRef: h.Spec.ChartRef, Chart: targets.GitChart(h), Values: h.Spec.Values, ValuesFrom: h.Spec.ValuesFrom,
		Suspend: h.Spec.Suspend, WaitStrategy: h.Spec.WaitStrategy,
	}
	if set := h.GetUpgrade().Timeout; set != nil || h.Spec.Timeout != nil {
		spec.Timeout = &metav1.Duration{Duration: h.GetUpgrade().GetTimeout(h.GetTimeout()).Duration}
	}
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
		LastAttemptedConfigDigest:   h.Status.LastAttemptedConfigDigest,
	}
	if _, charted := targets.ChartOf(h); charted && h.Spec.ChartRef == nil {
		status.HelmChart = h.Status.HelmChart
	}
	if newest := targets.NewestSnapshot(h); newest != nil {
		status.History = helmv2.Snapshots{{Version: newest.Version, Status: newest.Status, ChartVersion: newest.ChartVersion,
			ConfigDigest: newest.ConfigDigest, OCIDigest: newest.OCIDigest}}
	}
	h.Spec, h.Status = spec, status
}

// forgetValues removes the values, and what shows which were tried. For a HelmRelease that
// only consumes, the chart is enough.
func forgetValues(h *helmv2.HelmRelease) {
	h.Spec.Values, h.Spec.ValuesFrom, h.Status.LastAttemptedConfigDigest = nil, nil, ""
	for _, version := range h.Status.History {
		version.ConfigDigest = ""
	}
}
