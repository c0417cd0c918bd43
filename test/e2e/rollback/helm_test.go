// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

// failingTest is the version of the pods of a Helm test that fails.
const failingTest = "failing-test"

// install creates an application that is released as a chart, and waits for the good
// release.
func (a *app) install(release *helmv2.HelmRelease, option func(*v1alpha1.RolloutSpec)) {
	a.T.Helper()
	host, check := plane.Registry.Host(), a.HealthCheck()
	check.Annotations = map[string]string{"healthcheck.kuberik.com/helmrelease": a.Name}
	a.Create(a.NamespaceObject(), a.ImageRepository(host), a.ImagePolicy(">=1.0.0"), a.ChartRepository(host), release, check,
		a.Rollout(option, goesBack))
	a.push(a.tested(a.Chart(good), good))
	a.AwaitState(good, v1alpha1.BakeSucceeded)
}

func (a *app) push(chart controlplane.Chart) {
	a.T.Helper()
	if err := plane.Registry.PushChart(a.T.Context(), chart); err != nil {
		a.T.Fatal(err)
	}
	a.Scan()
}

// tested adds a Helm test to the chart. Its pods have a version of their own.
func (a *app) tested(chart controlplane.Chart, version string) controlplane.Chart {
	chart.Files["templates/test.yaml"] = `apiVersion: batch/v1
kind: Job
metadata:
  name: test
  annotations:
    helm.sh/hook: test
spec:
  activeDeadlineSeconds: 5
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: test
        image: registry.example/test:` + version + "\n"
	return chart
}

func (a *app) awaitRollback() *v1alpha1.Rollout {
	a.T.Helper()
	return a.Await("the rollback", func(r *v1alpha1.Rollout) bool {
		return len(r.Status.History) == 3 && r.Current().State() == v1alpha1.BakeSucceeded
	})
}

// Helm waits for nothing, and the pods of the new chart crash.
func TestChartThatCrashesIsRolledBackByItsHealthCheck(t *testing.T) {
	const version = "1.13.1"
	a := open(t, false)
	if err := plane.CrashVersion(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	release := a.HelmRelease()
	release.Spec.Install, release.Spec.Upgrade = &helmv2.Install{DisableWait: true}, &helmv2.Upgrade{DisableWait: true}
	a.install(release, a.Baked(time.Second, time.Hour))
	a.push(a.Chart(version))
	failed := a.awaitRollback().Status.History[1]
	if failed.Cause != v1alpha1.CauseHealthCheckFailed || !strings.Contains(*failed.BakeStatusMessage, "container shop crashes again and again") {
		t.Errorf("%s: %s %s", failed.Version.Tag, failed.Cause, *failed.BakeStatusMessage)
	}
	a.runs(good)
}

// The pods of the new chart are ready, and the test that the chart brings fails.
func TestChartWhoseTestFailsIsRolledBack(t *testing.T) {
	const version = "1.13.2"
	a := open(t, false)
	if err := plane.BreakVersion(t.Context(), failingTest); err != nil {
		t.Fatal(err)
	}
	release := a.HelmRelease()
	release.Spec.Test = &helmv2.Test{Enable: true}
	a.install(release, a.timed(time.Hour))
	a.push(a.tested(a.Chart(version), failingTest))
	failed := a.awaitRollback().Status.History[1]
	if failed.Cause != v1alpha1.CauseTargetUnhealthy || !strings.Contains(*failed.BakeStatusMessage, "Helm test failed") {
		t.Errorf("%s: %s %s", failed.Version.Tag, failed.Cause, *failed.BakeStatusMessage)
	}
	a.runs(good)
}

// Helm has waited for pods whose image cannot be pulled. That says nothing about the chart.
func TestChartThatWasNotStartedCondemnsNothing(t *testing.T) {
	const version = "1.13.3"
	a := open(t, false)
	if err := plane.BreakVersion(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	a.install(a.HelmRelease(), a.timed(time.Hour))
	a.push(a.GivesUpSoon().Chart(version))
	entry := a.AwaitState(version, v1alpha1.BakeFailed).Current()
	if entry.Cause != v1alpha1.CauseDeployTimeout || !strings.Contains(*entry.BakeStatusMessage, "Helm upgrade failed") {
		t.Errorf("%s: %s", entry.Cause, *entry.BakeStatusMessage)
	}
	a.Stays("where it is", func(r *v1alpha1.Rollout) bool { return len(r.Status.History) == 2 })
	a.holdsNothing()
}
