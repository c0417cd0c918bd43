// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// deployed is Helm's status of a release version that runs.
const deployed = "deployed"

// observeHelmRelease uses the last attempt of helm-controller and the newest version of
// the Helm release. helm-controller writes conditions before the rest of the status:
// Ready alone may still refer to the chart or the values before.
func (t Target) observeHelmRelease(rollout *v1alpha1.Rollout, release Release) observation {
	h := t.HelmRelease
	if found := t.helmHindered(rollout); !found.isNothing() {
		return found
	}
	charted, failed := t.sourceIsOf(rollout), t.hasFailed(rollout)
	switch {
	case t.awaitsDigest(release):
		return digestUnknown(release)
	case !charted && len(t.Paths) == 0, !t.offers(rollout, release):
		return t.lacking(release)
	case charted && refusesChart(h, release.Tag), failed:
		return failure(reasonOfHelm(h), apimeta.FindStatusCondition(h.Status.Conditions, meta.ReadyCondition).Message)
	case t.tried(rollout) && t.helmIsReady() && t.runsWhatItTried():
		return applied
	case !t.handled():
		return pending
	}
	return t.untried(notReady(h))
}

// hasFailed reports whether helm-controller's last attempt has failed, and was made after
// the version was written.
func (t Target) hasFailed(rollout *v1alpha1.Rollout) bool {
	return t.tried(rollout) && helmFailed(t.HelmRelease) && t.handled()
}

// reasonOfHelm returns why a HelmRelease has failed.
func reasonOfHelm(h *helmv2.HelmRelease) v1alpha1.TargetReason {
	if helmFailed(h) && wasApplied(h) {
		return v1alpha1.TargetUnhealthy
	}
	return v1alpha1.TargetNotApplied
}

// wasApplied reports whether the last attempt, which has failed, got as far as the cluster:
// its tests failed, or Helm has stored a version with its chart and its values.
func wasApplied(h *helmv2.HelmRelease) bool {
	if ready := notReady(h); ready != nil && ready.Reason == helmv2.TestFailedReason {
		return true
	}
	return slices.ContainsFunc(h.Status.History, func(s *helmv2.Snapshot) bool {
		return s != nil && s.ChartVersion == h.Status.LastAttemptedRevision && s.ConfigDigest == h.Status.LastAttemptedConfigDigest
	})
}

// gaveUp reports whether helm-controller does not try again by itself.
func (t Target) gaveUp(rollout *v1alpha1.Rollout) bool {
	return t.HelmRelease != nil && t.hasFailed(rollout) && apimeta.IsStatusConditionTrue(t.HelmRelease.Status.Conditions, meta.StalledCondition)
}

// offers reports whether Flux could apply the release: the target carries it, and its
// source has it.
func (t Target) offers(rollout *v1alpha1.Rollout, release Release) bool {
	return t.Carries(release) && t.sourceOffers(rollout, release)
}

// tried reports whether helm-controller's last attempt was for the HelmRelease's
// generation. This includes its values, but not its chart: if the Rollout writes the
// source of the chart, the attempt must also have been with what this source offers now.
func (t Target) tried(rollout *v1alpha1.Rollout) bool {
	switch revision := revisionOf(t.Source); {
	case t.Artifact != nil:
		return triedChart(t.HelmRelease, t.Artifact.revision())
	case t.sourceIsOf(rollout) && IsGit(t.Source):
		return triedCommit(t.HelmRelease, revision)
	case t.sourceIsOf(rollout):
		return triedChart(t.HelmRelease, revision)
	}
	return t.HelmRelease.Status.LastAttemptedGeneration == t.HelmRelease.Generation
}

// helmIsReady reports whether helm-controller is done with the HelmRelease's generation.
// Of written values, Ready must say so too.
func (t Target) helmIsReady() bool {
	h := t.HelmRelease
	if !isReady(h.Status.Conditions) || h.Status.ObservedGeneration != h.Generation {
		return false
	}
	return len(t.Paths) == 0 || apimeta.FindStatusCondition(h.Status.Conditions, meta.ReadyCondition).ObservedGeneration == h.Generation
}

// handled reports whether helm-controller has ended a pass since the values were written.
// Until then, Ready may be about the generation before. A HelmRelease that only consumes
// is not written, and the attempt shows its chart.
func (t Target) handled() bool {
	return len(t.Paths) == 0 || Handled(t.HelmRelease, t.HelmRelease.Status.LastHandledReconcileAt)
}

// helmHindered returns what keeps a HelmRelease from any version.
func (t Target) helmHindered(rollout *v1alpha1.Rollout) observation {
	h := t.HelmRelease
	switch found, unknown := t.misannotated(), t.commitUnknown(rollout); {
	case !found.isNothing():
		return found
	case !unknown.isNothing():
		return unknown
	case installs(h, rollout):
		return conflict(v1alpha1.TargetDependencyCycle, "installs this Rollout and waits for it, while the Rollout waits for what it installs: "+
			"install the Rollout from elsewhere, or set spec.install.disableWait and spec.upgrade.disableWait to true")
	case h.Spec.Suspend:
		return suspended
	case t.consumesMissingSource():
		return missingSource(t.sourceName())
	}
	return observation{}
}

// installs reports whether the chart of the HelmRelease contains the Rollout and Helm
// waits until it is ready, which is a cycle. The wait strategy of Helm 3 does not know
// Rollouts.
func installs(h *helmv2.HelmRelease, rollout *v1alpha1.Rollout) bool {
	group := helmv2.GroupVersion.Group
	if rollout.Labels[group+"/name"] != h.Name || rollout.Labels[group+"/namespace"] != h.Namespace {
		return false
	}
	never := h.GetInstall().DisableWait && h.GetUpgrade().DisableWait
	return !never && h.GetWaitStrategy() != helmv2.WaitStrategyLegacy
}

// triedChart reports whether helm-controller's last attempt was for the HelmRelease's
// generation, and with the chart of a revision, which the source offers now.
func triedChart(h *helmv2.HelmRelease, revision string) bool {
	if revision == "" || h.Status.LastAttemptedGeneration != h.Generation {
		return false
	}
	tried := h.Status.LastAttemptedRevisionDigest
	tag, digest, _ := strings.Cut(revision, "@")
	named, err := semver.NewVersion(strings.ReplaceAll(tag, "_", "+")) // a tag cannot contain a +
	if err != nil {
		return tried != "" && tried == revision // if the tag is not a version, the whole revision is recorded
	}
	chart, err := semver.NewVersion(h.Status.LastAttemptedRevision)
	return err == nil && chart.Equal(named) && tried != "" && tried == digest
}

// chartMutateError is helm-controller's reason for a chart that it has loaded and will
// not try, because its version is invalid or does not match the tag.
const chartMutateError = "ChartMutateError"

// refusesChart reports whether helm-controller will not try the chart of this version.
// helm-controller records no attempt in that case, so only its message shows which chart
// it means. The message about a chart that it cannot load does not show this: the cause
// may be the chart before, or the network.
func refusesChart(h *helmv2.HelmRelease, version string) bool {
	ready := notReady(h)
	if ready == nil || ready.Reason != chartMutateError {
		return false
	}
	return strings.HasPrefix(ready.Message, "artifact revision "+version+" does not match chart version ") ||
		ready.Message == "invalid chart version "+version
}

// notReady returns the condition that shows why the HelmRelease is not ready at its
// generation. It returns nil if it is ready, or if it is being deleted, which uninstalls
// it.
func notReady(h *helmv2.HelmRelease) *metav1.Condition {
	ready := apimeta.FindStatusCondition(h.Status.Conditions, meta.ReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionFalse || ready.ObservedGeneration != h.Generation || !h.DeletionTimestamp.IsZero() {
		return nil
	}
	return ready
}

// helmFailed reports whether Helm tried and failed. A rollback or an uninstallation after
// that is the end of such a failure.
func helmFailed(h *helmv2.HelmRelease) bool {
	ready := notReady(h)
	if ready == nil {
		return false
	}
	switch ready.Reason {
	case helmv2.InstallFailedReason, helmv2.UpgradeFailedReason, helmv2.TestFailedReason,
		helmv2.RollbackSucceededReason, helmv2.RollbackFailedReason,
		helmv2.UninstallSucceededReason, helmv2.UninstallFailedReason:
		return true
	}
	return false // all other reasons show why helm-controller did not try or could not continue
}

// runsWhatItTried reports whether the newest version of the Helm release uses the chart
// of the last attempt and, if the Rollout writes values, all of its values. A version
// that a rollback has deployed has no digest of the chart.
func (t Target) runsWhatItTried() bool {
	status, newest := t.HelmRelease.Status, NewestSnapshot(t.HelmRelease)
	return newest != nil && newest.Status == deployed && newest.ChartVersion == status.LastAttemptedRevision &&
		(newest.OCIDigest == "" || newest.OCIDigest == status.LastAttemptedRevisionDigest) &&
		(len(t.Paths) == 0 || newest.ConfigDigest == status.LastAttemptedConfigDigest)
}

// NewestSnapshot returns the newest version of the Helm release, or nil if there is none.
func NewestSnapshot(h *helmv2.HelmRelease) *helmv2.Snapshot {
	var newest *helmv2.Snapshot
	for _, snapshot := range h.Status.History {
		if snapshot != nil && (newest == nil || snapshot.Version > newest.Version) {
			newest = snapshot
		}
	}
	return newest
}
