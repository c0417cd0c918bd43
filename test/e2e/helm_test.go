// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// charted returns an application that is released as a chart, after the first release was
// promoted. Helm installs the chart. A Kustomization of the same OCIRepository applies the
// manifests that Helm ignores.
func charted(t *testing.T, release func(*helmv2.HelmRelease)) *env.Env {
	t.Helper()
	s := newEnv(t)
	helm := s.HelmRelease()
	if release != nil {
		release(helm)
	}
	host := plane.Registry.Host()
	s.Create(s.NamespaceObject(), s.ImageRepository(host), s.ImagePolicy(">=1.0.0"), s.ChartRepository(host),
		s.DashboardsKustomization(), helm, s.Rollout())
	publishChart(s, s.Chart("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	return s
}

func publishChart(s *env.Env, chart controlplane.Chart) {
	s.T.Helper()
	if err := plane.Registry.PushChart(s.T.Context(), chart); err != nil {
		s.T.Fatal(err)
	}
	s.Scan()
}

// failsSaying waits until Helm's message about a version is reported, shortens the
// deadline, and checks that the release fails with this message.
func failsSaying(s *env.Env, version, words string) {
	s.T.Helper()
	awaitFailedTarget(s, version, "TargetFailed: HelmRelease shop: "+words)
	s.SetDeployTimeout(time.Second)
	failed := s.AwaitState(version, v1alpha1.BakeFailed)
	if why := *failed.Current().BakeStatusMessage; !strings.Contains(why, words) {
		s.T.Errorf("it failed because %q, which does not say %q", why, words)
	}
	s.SetDeployTimeout(0)
}

// Pods of 4.1.0 are not ready until the test repairs the version.
func TestBakeBeginsOnceHelmHasRolledOutTheChart(t *testing.T) {
	if err := plane.BreakVersion(t.Context(), "4.1.0"); err != nil {
		t.Fatal(err)
	}
	s := charted(t, nil)
	s.SetBakeTime(time.Hour)
	publishChart(s, s.Chart("4.1.0"))
	kustomization := s.Kustomization()
	env.Eventually(t, "the Kustomization applied and Helm at work", func() (bool, string) {
		s.Read(kustomization)
		applied := strings.HasPrefix(kustomization.Status.LastAppliedRevision, "4.1.0@")
		return applied && imageOf(s) == "registry.example/shop:4.1.0", kustomization.Status.LastAppliedRevision
	})
	s.Stays("Deploying while Helm waits", func(r *v1alpha1.Rollout) bool {
		return r.Current().Version.Tag == "4.1.0" && r.Current().State() == v1alpha1.BakeDeploying
	})
	if err := plane.FixVersion(t.Context(), "4.1.0"); err != nil {
		t.Fatal(err)
	}
	baking := s.AwaitState("4.1.0", v1alpha1.BakeInProgress)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	s.Read(deployment)
	if got, want := deployment.Status.ReadyReplicas, *deployment.Spec.Replicas; got != want {
		t.Errorf("the bake began with %d ready pods, want %d", got, want)
	}
	if diff := cmp.Diff([]string{"HelmRelease Applied", "Kustomization Applied", "OCIRepository Applied"}, targetsOf(baking)); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	s.SetBakeTime(time.Second)
	s.AwaitState("4.1.0", v1alpha1.BakeSucceeded)
}

func targetsOf(r *v1alpha1.Rollout) []string {
	var all []string
	for _, target := range r.Status.Targets {
		all = append(all, target.Kind+" "+string(target.State))
	}
	return all
}

// Pods of 4.2.0 are never ready.
func TestReleaseFailsWhenTheUpgradeByHelmDoes(t *testing.T) {
	if err := plane.BreakVersion(t.Context(), "4.2.0"); err != nil {
		t.Fatal(err)
	}
	s := charted(t, nil)
	publishChart(s, s.GivesUpSoon().Chart("4.2.0"))
	failsSaying(s, "4.2.0", "Helm upgrade failed for release "+s.Namespace+"/shop with chart shop@4.2.0+")
}

// helm-controller does not install a chart whose version differs from its tag.
func TestReleaseFailsWhenItsTagIsNotTheVersionOfTheChart(t *testing.T) {
	s := charted(t, nil)
	chart := s.Chart("4.4.0")
	chart.Tag = "4.4.1"
	publishChart(s, chart)
	failsSaying(s, "4.4.1", "artifact revision 4.4.1 does not match chart version 4.4.0")
}

// Pods of 4.3.0 are never ready, and Helm rolls back to 1.0.0 by itself. Helm then
// reports no problem, but the release has failed. A rollback to 1.0.0 needs no upgrade
// then.
func TestReleaseFailsWhenHelmRollsItBack(t *testing.T) {
	if err := plane.BreakVersion(t.Context(), "4.3.0"); err != nil {
		t.Fatal(err)
	}
	s := charted(t, func(h *helmv2.HelmRelease) {
		h.Spec.Upgrade = &helmv2.Upgrade{Remediation: &helmv2.UpgradeRemediation{RemediateLastFailure: new(true)}}
	})
	publishChart(s, s.GivesUpSoon().Chart("4.3.0"))
	failsSaying(s, "4.3.0", "Helm rollback to previous release "+s.Namespace+"/shop.v1 with chart shop@1.0.0+")
	if got, want := imageOf(s), "registry.example/shop:1.0.0"; got != want {
		t.Errorf("the Deployment runs %s, want %s", got, want)
	}
	s.Pin("1.0.0")
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	publishChart(s, s.Chart("4.3.1"))
	s.Pin("4.3.1")
	done := s.AwaitState("4.3.1", v1alpha1.BakeSucceeded)
	want := []string{"4 4.3.1 Succeeded", "3 1.0.0 Succeeded", "2 4.3.0 Failed", "1 1.0.0 Succeeded"}
	if diff := cmp.Diff(want, env.History(done)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}
