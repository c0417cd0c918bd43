// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const (
	upgradeFailed = "Helm upgrade failed for release shop/web with chart web@1.1.0: context deadline exceeded"
	rolledBack    = "Helm rollback to previous release shop/web.v1 with chart web@1.0.0 succeeded"
	helmCycle     = "installs this Rollout and waits for it, while the Rollout waits for what it installs: " +
		"install the Rollout from elsewhere, or set spec.install.disableWait and spec.upgrade.disableWait to true"
)

func TestHelmReleaseIsObserved(t *testing.T) {
	now, before := fixture.Revision("1.1.0"), fixture.Revision("1.0.0")
	_, digest, _ := strings.Cut(now, "@")
	source := func() *fixture.RepositoryBuilder {
		return fixture.MakeRepository("web").DrivenBy("shop").Tag("1.1.0").Pulled(now)
	}
	made := func() *fixture.HelmReleaseBuilder { return fixture.MakeHelmRelease("web").Generation(2) }
	deployed := func() *fixture.HelmReleaseBuilder {
		return made().Installed(before, "superseded").Deployed(now).Ready()
	}
	failed := func(reason, message string) *fixture.HelmReleaseBuilder {
		return made().Installed(before, "deployed").Attempted(now).AttemptedWith(fixture.ConfigDigest).Installed(now, "failed").
			Condition(meta.ReadyCondition, no, 2, message).Because(reason)
	}
	rejected := func(message string) *fixture.HelmReleaseBuilder {
		return made().Deployed(before).Condition(meta.ReadyCondition, no, 2, message).Because("ChartMutateError")
	}
	untried := func(reason string) *fixture.HelmReleaseBuilder {
		return deployed().Condition(meta.ReadyCondition, no, 2, "cannot try").Because(reason)
	}
	fromChart := func(r *v1alpha1.Rollout) {
		r.Labels = map[string]string{"helm.toolkit.fluxcd.io/name": "web", "helm.toolkit.fluxcd.io/namespace": fixture.Namespace}
	}
	for name, tt := range map[string]struct {
		release *fixture.HelmReleaseBuilder
		source  *fixture.RepositoryBuilder // web at 1.1.0 by default
		version string                     // 1.1.0 by default
		rollout func(*v1alpha1.Rollout)
		state   v1alpha1.TargetState
		reason  v1alpha1.TargetReason
		message string
	}{
		"applied once Helm has deployed what the source offers": {
			release: deployed(), state: v1alpha1.TargetApplied,
		},
		"pending before Helm has tried anything": {
			release: made(), state: v1alpha1.TargetPending,
		},
		"pending while Helm is ready with what the source offered before": {
			release: made().Deployed(before).Ready(), state: v1alpha1.TargetPending,
		},
		"pending while the source that we drive still offers the tag before": {
			release: made().Deployed(before).Ready(), source: source().Pulled(before), state: v1alpha1.TargetPending,
		},
		"pending while the source offers nothing": {
			release: deployed(), source: fixture.MakeRepository("web").DrivenBy("shop").Tag("1.1.0"), state: v1alpha1.TargetPending,
		},
		"pending while its source does not exist": {
			release: deployed(), source: fixture.MakeRepository(""), state: v1alpha1.TargetPending, reason: v1alpha1.TargetSourceMissing, message: "its OCIRepository web does not exist",
		},
		"pending if its chart comes from elsewhere now": {
			release: deployed().FromChart("web"), source: fixture.MakeRepository(""), state: v1alpha1.TargetPending,
		},
		"pending while its generation is not observed": {
			release: deployed().Observed(1), state: v1alpha1.TargetPending,
		},
		"pending if Helm tried an older generation": {
			release: deployed().AttemptedAt(1), state: v1alpha1.TargetPending,
		},
		"pending while Helm works": {
			release: made().Installed(before, "deployed").Attempted(now).
				Condition(meta.ReadyCondition, unknown, 2, "Running 'upgrade' action with timeout of 5m0s").
				Condition(meta.ReconcilingCondition, yes, 2, "Running 'upgrade' action with timeout of 5m0s"),
			state: v1alpha1.TargetPending,
		},
		"pending while Helm works on what was ready": {
			release: deployed().Condition(meta.ReconcilingCondition, yes, 2, "Fulfilling prerequisites"), state: v1alpha1.TargetPending,
		},
		"pending while stalled": {
			release: deployed().Condition(meta.StalledCondition, yes, 2, "invalid expression"), state: v1alpha1.TargetPending,
		},
		"pending while Ready comes before the history": {
			release: made().Deployed(before).Attempted(now).Ready(), state: v1alpha1.TargetPending,
		},
		"pending while the newest version in the history is not deployed": {
			release: made().Installed(before, "deployed").Attempted(now).Installed(now, "pending-upgrade").Ready(), state: v1alpha1.TargetPending,
		},
		"pending if another digest of the chart is deployed": {
			release: made().Attempted(now).Snapshot(fixture.ChartVersion("1.1.0", digest), "sha256:0123456789ab", "deployed").Ready(),
			state:   v1alpha1.TargetPending,
		},
		"applied if it was rolled back to what the source offers now": {
			release: made().Attempted(now).Snapshot(fixture.ChartVersion("1.1.0", digest), "", "deployed").Ready(),
			state:   v1alpha1.TargetApplied,
		},
		"applied if Helm does not append the digest to the version of the chart": {
			release: made().Attempted(now).AttemptedAs("1.1.0", digest).Snapshot("1.1.0", digest, "deployed").Ready(),
			state:   v1alpha1.TargetApplied,
		},
		"applied though the newest version is not the first in the history": {
			release: made().Attempted(now).Installed(before, "superseded").Installed(now, "deployed").Reversed().Ready(),
			state:   v1alpha1.TargetApplied,
		},
		"applied by a tag with the prefix v": {
			release: made().Deployed(fixture.Revision("v1.1.0")).Ready(), version: "v1.1.0",
			source: source().Tag("v1.1.0").Pulled(fixture.Revision("v1.1.0")), state: v1alpha1.TargetApplied,
		},
		"applied by a tag that is no version, whose whole revision Helm notes": {
			release: made().Attempted(now).AttemptedAs("3.0.0+0123456789ab", fixture.Revision("main-17")).
				Snapshot("3.0.0+0123456789ab", fixture.Revision("main-17"), "deployed").Ready(),
			version: "main-17", source: source().Tag("main-17").Pulled(fixture.Revision("main-17")), state: v1alpha1.TargetApplied,
		},
		"pending if Helm tried another version of the same digest": {
			release: made().Attempted(now).AttemptedAs(fixture.ChartVersion("1.0.9", digest), digest).
				Snapshot(fixture.ChartVersion("1.0.9", digest), digest, "deployed").Ready(),
			state: v1alpha1.TargetPending,
		},
		"pending while suspended, whatever it reports": {
			release: deployed().Suspended(), state: v1alpha1.TargetPending, reason: v1alpha1.TargetSuspended, message: "is suspended: resume it",
		},
		"failed if the upgrade failed": {
			release: failed(helmv2.UpgradeFailedReason, upgradeFailed), state: v1alpha1.TargetFailed, reason: v1alpha1.TargetUnhealthy, message: upgradeFailed,
		},
		"failed if the installation failed": {
			release: failed(helmv2.InstallFailedReason, "Helm install failed"), state: v1alpha1.TargetFailed, reason: v1alpha1.TargetUnhealthy, message: "Helm install failed",
		},
		"failed if the tests of the chart failed": {
			release: failed(helmv2.TestFailedReason, "Helm test failed"), state: v1alpha1.TargetFailed, reason: v1alpha1.TargetUnhealthy, message: "Helm test failed",
		},
		"failed if Helm went back to the release before": {
			release: failed(helmv2.RollbackSucceededReason, rolledBack).Snapshot(fixture.ChartVersion("1.0.0", ""), "", "deployed"),
			state:   v1alpha1.TargetFailed, reason: v1alpha1.TargetUnhealthy, message: rolledBack,
		},
		"failed if Helm could not go back": {
			release: failed(helmv2.RollbackFailedReason, "Helm rollback failed"), state: v1alpha1.TargetFailed, reason: v1alpha1.TargetUnhealthy, message: "Helm rollback failed",
		},
		"failed if Helm uninstalled what it could not install": {
			release: failed(helmv2.UninstallSucceededReason, "Helm uninstall remediation succeeded"),
			state:   v1alpha1.TargetFailed, reason: v1alpha1.TargetUnhealthy, message: "Helm uninstall remediation succeeded",
		},
		"failed if Helm could not uninstall it": {
			release: failed(helmv2.UninstallFailedReason, "Helm uninstall failed"), state: v1alpha1.TargetFailed, reason: v1alpha1.TargetUnhealthy, message: "Helm uninstall failed",
		},
		"failed if Helm says so while it is about to try again": {
			release: failed(helmv2.UpgradeFailedReason, upgradeFailed).Condition(meta.ReconcilingCondition, yes, 2, "retrying after 5m0s"),
			state:   v1alpha1.TargetFailed, reason: v1alpha1.TargetUnhealthy, message: upgradeFailed,
		},
		"pending while it is being deleted, which is no failure of the release": {
			release: failed(helmv2.UninstallSucceededReason, "Helm uninstall succeeded").Deleted(), state: v1alpha1.TargetPending,
			reason: v1alpha1.TargetDeleting, message: "is being deleted",
		},
		"failed, and not unhealthy, if Helm did not get as far as the cluster": {
			release: made().Installed(before, "deployed").Attempted(now).AttemptedWith(fixture.ConfigDigest).
				Condition(meta.ReadyCondition, no, 2, upgradeFailed).Because(helmv2.UpgradeFailedReason),
			state: v1alpha1.TargetFailed, reason: v1alpha1.TargetNotApplied, message: upgradeFailed,
		},
		"failed, and not unhealthy, if what failed were other values": {
			release: failed(helmv2.UpgradeFailedReason, upgradeFailed).AttemptedWith("sha256:3"),
			state:   v1alpha1.TargetFailed, reason: v1alpha1.TargetNotApplied, message: upgradeFailed,
		},
		"pending if Helm failed with what the source offered before": {
			release: failed(helmv2.UpgradeFailedReason, upgradeFailed).Attempted(before), state: v1alpha1.TargetPending,
		},
		"pending if Helm failed with another digest of the tag": {
			release: failed(helmv2.UpgradeFailedReason, upgradeFailed).Attempted("1.1.0@sha256:0123456789abcdef"), state: v1alpha1.TargetPending,
		},
		"pending if Helm failed at an older generation": {
			release: failed(helmv2.UpgradeFailedReason, upgradeFailed).AttemptedAt(1), state: v1alpha1.TargetPending,
		},
		"pending if Helm said of an older generation that it failed": {
			release: failed(helmv2.UpgradeFailedReason, upgradeFailed).Condition(meta.ReadyCondition, no, 1, upgradeFailed).
				Because(helmv2.UpgradeFailedReason), state: v1alpha1.TargetPending,
		},
		"pending if Helm tried nothing, because another one was not ready": {
			release: untried(helmv2.DependencyNotReadyReason), state: v1alpha1.TargetPending, reason: v1alpha1.TargetDependencyNotReady, message: "cannot try",
		},
		"pending if Helm could not fetch the chart": {
			release: untried(helmv2.ArtifactFailedReason), state: v1alpha1.TargetPending, reason: v1alpha1.TargetArtifactFailed, message: "cannot try",
		},
		"pending if Helm could not read its values": {
			release: untried("ValuesError"), state: v1alpha1.TargetPending, reason: v1alpha1.TargetArtifactFailed, message: "cannot try",
		},
		"pending if Helm does not get as far as to try": {
			release: untried("RESTClientError"), state: v1alpha1.TargetPending, reason: v1alpha1.TargetNotApplied, message: "cannot try",
		},
		"pending without a word of Helm while the source that we drive has not pulled the version": {
			release: made().Deployed(before).Condition(meta.ReadyCondition, no, 2, "cannot try").Because(helmv2.DependencyNotReadyReason),
			source:  source().Pulled(before), state: v1alpha1.TargetPending,
		},
		"pending without a word of Helm about an older generation": {
			release: deployed().Condition(meta.ReadyCondition, no, 1, "cannot try").Because(helmv2.DependencyNotReadyReason), state: v1alpha1.TargetPending,
		},
		"pending while the chart that Flux has made does not exist": {
			release: deployed().FromChart("web").Charted("OCIRepository/shop-prod/web"), source: fixture.MakeRepository(""),
			state: v1alpha1.TargetPending, reason: v1alpha1.TargetSourceMissing, message: "its OCIRepository web does not exist",
		},
		"applied with a chart that Flux has made into an OCIRepository": {
			release: deployed().FromChart("web").Charted("OCIRepository/shop-prod/web"), state: v1alpha1.TargetApplied,
		},
		"failed if the tag is not the version of the chart": {
			release: rejected("artifact revision 1.1.0 does not match chart version 1.0.9"),
			state:   v1alpha1.TargetFailed, reason: v1alpha1.TargetNotApplied, message: "artifact revision 1.1.0 does not match chart version 1.0.9",
		},
		"failed if the version of the chart, which is the tag, is none": {
			release: rejected("invalid chart version main"), version: "main", source: source().Tag("main").Pulled(fixture.Revision("main")),
			state: v1alpha1.TargetFailed, reason: v1alpha1.TargetNotApplied, message: "invalid chart version main",
		},
		"pending if another tag was not the version of its chart": {
			release: rejected("artifact revision 1.0.0 does not match chart version 0.9.0"), state: v1alpha1.TargetPending,
		},
		"pending if another tag was not, of which this one is the beginning": {
			release: rejected("artifact revision 1.1.0-rc.1 does not match chart version 0.9.0"), state: v1alpha1.TargetPending,
		},
		"pending if it is not known of which chart the version is none": {
			release: rejected("invalid chart version latest"), state: v1alpha1.TargetPending,
		},
		"pending if the chart was refused at an older generation": {
			release: rejected("").Condition(meta.ReadyCondition, no, 1, "artifact revision 1.1.0 does not match chart version 1.0.9").
				Because("ChartMutateError"), state: v1alpha1.TargetPending,
		},
		"pending while the source that we drive has not pulled what was refused": {
			release: rejected("artifact revision 1.1.0 does not match chart version 1.0.9"), source: source().Pulled(before),
			state: v1alpha1.TargetPending,
		},
		"pending if Helm was stopped by something newer": {
			release: untried(meta.HealthCheckCanceledReason), state: v1alpha1.TargetPending,
		},
		"in conflict if its chart has the Rollout and it waits for all": {
			release: deployed(), rollout: fromChart, state: v1alpha1.TargetConflict, reason: v1alpha1.TargetDependencyCycle, message: helmCycle,
		},
		"in conflict if it waits for the Rollout at upgrades alone": {
			release: deployed().NoWait(true, false), rollout: fromChart, state: v1alpha1.TargetConflict, reason: v1alpha1.TargetDependencyCycle, message: helmCycle,
		},
		"in conflict if it waits for the Rollout at the installation alone": {
			release: deployed().NoWait(false, true), rollout: fromChart, state: v1alpha1.TargetConflict, reason: v1alpha1.TargetDependencyCycle, message: helmCycle,
		},
		"applied if its chart has the Rollout and it never waits": {
			release: deployed().NoWait(true, true), rollout: fromChart, state: v1alpha1.TargetApplied,
		},
		"applied if its chart has the Rollout and it waits as Helm 3 did, which knows no Rollouts": {
			release: deployed().WaitStrategy(helmv2.WaitStrategyLegacy), rollout: fromChart, state: v1alpha1.TargetApplied,
		},
	} {
		t.Run(name, func(t *testing.T) {
			rollout, version := fixture.MakeRollout("shop").Obj(), tt.version
			if tt.rollout != nil {
				tt.rollout(rollout)
			}
			if version == "" {
				version = "1.1.0"
			}
			if tt.source == nil {
				tt.source = source()
			}
			observed := targets.Target{HelmRelease: tt.release.Obj(), Source: tt.source.Obj()}
			if observed.Source.GetName() == "" {
				observed.Source = nil
			}
			seen := observed.Observe(rollout, byTag(version))
			seen.Waits = 0 // TestHowLongFluxWaits
			NewWithT(t).Expect(seen).To(Equal(content.Target{
				Kind: "HelmRelease", Namespace: fixture.Namespace, Name: "web", State: tt.state, Reason: tt.reason, Message: tt.message,
				Unhealthy: tt.reason == v1alpha1.TargetUnhealthy,
			}))
		})
	}
}

// All reasons with which helm-controller 1.6 reports that a HelmRelease is not ready,
// after it has tried the chart of this version.
func TestHelmReasonsThatAreFailuresOfTheVersion(t *testing.T) {
	now := fixture.Revision("1.1.0")
	source := fixture.MakeRepository("web").DrivenBy("shop").Tag("1.1.0").Pulled(now).Obj()
	for reason, want := range map[string]v1alpha1.TargetState{
		helmv2.InstallFailedReason:      v1alpha1.TargetFailed,
		helmv2.UpgradeFailedReason:      v1alpha1.TargetFailed,
		helmv2.TestFailedReason:         v1alpha1.TargetFailed,
		helmv2.RollbackSucceededReason:  v1alpha1.TargetFailed,
		helmv2.RollbackFailedReason:     v1alpha1.TargetFailed,
		helmv2.UninstallSucceededReason: v1alpha1.TargetFailed,
		helmv2.UninstallFailedReason:    v1alpha1.TargetFailed,
		// Causes outside of the chart.
		"AccessDenied":                  v1alpha1.TargetPending,
		helmv2.ArtifactFailedReason:     v1alpha1.TargetPending,
		helmv2.DependencyNotReadyReason: v1alpha1.TargetPending,
		"FactoryError":                  v1alpha1.TargetPending,
		meta.HealthCheckCanceledReason:  v1alpha1.TargetPending,
		meta.InvalidCELExpressionReason: v1alpha1.TargetPending,
		"ReconcileError":                v1alpha1.TargetPending,
		"ResourceManagerError":          v1alpha1.TargetPending,
		"RESTClientError":               v1alpha1.TargetPending,
		"SourceNotReady":                v1alpha1.TargetPending,
		"StateError":                    v1alpha1.TargetPending,
		"ValuesError":                   v1alpha1.TargetPending,
		// A failure only if the message names this version.
		"ChartMutateError": v1alpha1.TargetPending,
	} {
		t.Run(reason, func(t *testing.T) {
			release := fixture.MakeHelmRelease("web").Generation(2).Deployed(now).Condition(meta.ReadyCondition, no, 2, "it says so").Because(reason)
			seen := targets.Target{HelmRelease: release.Obj(), Source: source}.Observe(fixture.MakeRollout("shop").Obj(), byTag("1.1.0"))
			NewWithT(t).Expect(seen.State).To(Equal(want))
			mute := reason == meta.HealthCheckCanceledReason || reason == "ChartMutateError"
			NewWithT(t).Expect(seen.Message == "").To(Equal(mute), "the text of Flux says why it has not tried, or failed")
			NewWithT(t).Expect(seen.Reason == "").To(Equal(mute))
		})
	}
}

func TestHelmReleaseWithoutValuesIsOnlyRead(t *testing.T) {
	g := NewWithT(t)
	release := targets.Target{HelmRelease: fixture.MakeHelmRelease("web").Obj()}
	g.Expect(release.String()).To(Equal("HelmRelease " + fixture.Namespace + "/web"))
	g.Expect(release.Carries(byTag("1.1.0"))).To(BeTrue(), "it carries every version")
	g.Expect(release.Writable(byTag("1.1.0"))).To(BeFalse())
	g.Expect(release.Taken(byTag("1.1.0"))).To(Equal(targets.Taking{}))
	g.Expect(release.Owned()).To(BeEmpty())
	g.Expect(release.OwnsTooMuch()).To(BeFalse())
	_, foreign := release.ForeignSource()
	g.Expect(foreign).To(BeFalse())
}
