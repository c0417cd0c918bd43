// SPDX-License-Identifier: Apache-2.0

package alone

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

func TestProgramThatCannotStartEndsAndSaysWhatIsMissing(t *testing.T) {
	kubeconfig, err := plane.AddUser("system:serviceaccount:default:nobody", "system:serviceaccounts")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ args, says string }{
		"promotes": {"--controllers=rollout", "the controller rollout cannot start: the API server serves no Rollout.kuberik.com: install the CRDs of config/crd"},
		"all":      {"--controllers=*", "deploymentcoordination: this account may not list deploymentcoordinations.apps.containerinfra.nl"},
		"nonsense": {"--controllers=rollouts", "is not a controller: there are rollout, rolloutschedule"},
	} {
		t.Run(name, func(t *testing.T) {
			process, err := plane.StartProcess("start-"+name, program, []string{"--kubeconfig=" + kubeconfig, "--health-probe-bind-address=0", tt.args}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := process.Wait(t.Context()); err == nil {
				t.Error("it ended well")
			}
			if log := logOf(t, process); !strings.Contains(log, tt.says) {
				t.Errorf("it did not say %q:\n%s", tt.says, log)
			}
		})
	}
}

// A user who installs Flux later, or in the same minute, does not need to restart
// anything by hand.
func TestFeatureThatLacksAKindBeginsOnceItIsServed(t *testing.T) {
	kubeconfig, err := scenario.Install(t.Context(), plane, scenario.Account, "deployment-coordination")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--controllers=*,deploymentcoordination", "--watch-all-namespaces=false"}
	process, err := scenario.StartControllerAs(plane, "before-flux", program, kubeconfig, nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Stop(context.Background()) })
	awaitLog(t, process, `"controllers":["deploymentcoordination"]`)
	own, err := manifests.Kustomize(t.Context(), "config/crd")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range own {
		ensure(t, o)
	}
	if !process.Running() {
		t.Fatalf("it ended while Flux was missing:\n%s", logOf(t, process))
	}
	for i := range flux {
		if flux[i].Spec.Group != helmv2.GroupVersion.Group {
			ensure(t, &flux[i])
		}
	}
	if err := process.Wait(t.Context()); err == nil {
		t.Error("it ended well, so that nobody would start it again")
	}
	awaitLog(t, process, "everything is served now that the controller")

	again, err := scenario.StartControllerAs(plane, "after-flux", program, mayWatchOneCRD(t), nil, args...) // as the kubelet does
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Stop(context.Background()) })
	awaitLog(t, again, `"controllers":["deploymentcoordination","environment","healthcheck","quarantine","rollout","rolloutschedule"]`)
	beginsToWaitForHelm(t, again)
}

// mayWatchOneCRD returns a kubeconfig for an account with the shipped rights, except the
// rights to read everything that HealthChecks evaluate.
func mayWatchOneCRD(t *testing.T) (kubeconfig string) {
	t.Helper()
	const account = "later"
	kubeconfig, err := scenario.Install(t.Context(), plane, account, "deployment-coordination")
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"health-workloads", "health-reader"} {
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "rollout-controller-" + role + "-rolebinding-" + account}}
		if err := plane.Client().Delete(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
	}
	return kubeconfig
}

// beginsToWaitForHelm installs the CRD of HelmRelease. The running controller must begin
// to use it without a restart, and must log nothing about it before. A HealthCheck of a
// HelmRelease says before that there is none, and follows it afterwards.
func beginsToWaitForHelm(t *testing.T, process *controlplane.Process) {
	t.Helper()
	if log := logOf(t, process); strings.Contains(log, "HelmRelease") {
		t.Errorf("it speaks of HelmReleases where there are none:\n%s", log)
	}
	named := metav1.ObjectMeta{Namespace: scenario.Namespace, Name: "later"}
	check := &v1alpha1.HealthCheck{ObjectMeta: named, Spec: v1alpha1.HealthCheckSpec{Class: new(v1alpha1.HealthCheckClassKustomization)}}
	check.Annotations = map[string]string{
		"healthcheck.kuberik.com/helmrelease": named.Name, v1alpha1.RequeueIntervalAnnotation: "1h",
	}
	ensure(t, check)
	awaitMessage(t, check, "HelmRelease "+named.Namespace+"/later does not exist")
	for i := range flux {
		if flux[i].Spec.Group == helmv2.GroupVersion.Group {
			ensure(t, &flux[i])
		}
	}
	awaitLog(t, process, "HelmReleases are served now, and watched")
	ensure(t, &helmv2.HelmRelease{ObjectMeta: named, Spec: helmv2.HelmReleaseSpec{
		Interval: metav1.Duration{Duration: time.Hour}, ChartRef: &helmv2.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: "later"},
	}})
	awaitMessage(t, check, "Waiting for HelmRelease "+named.Namespace+"/later")
	if log := logOf(t, process); !process.Running() || strings.Contains(log, `"level":"error"`) {
		t.Errorf("it did not begin quietly:\n%s", log)
	}
}

func awaitMessage(t *testing.T, check *v1alpha1.HealthCheck, text string) {
	t.Helper()
	env.Eventually(t, "the message "+text, func() (bool, string) {
		message := ""
		if err := plane.Client().Get(t.Context(), client.ObjectKeyFromObject(check), check); err == nil && check.Status.Message != nil {
			message = *check.Status.Message
		}
		return strings.HasPrefix(message, text), message
	})
}

func awaitLog(t *testing.T, process *controlplane.Process, text string) {
	t.Helper()
	env.Eventually(t, "the log line "+text, func() (bool, string) {
		log := logOf(t, process)
		return strings.Contains(log, text), log
	})
}

func logOf(t *testing.T, process *controlplane.Process) string {
	t.Helper()
	log, err := os.ReadFile(process.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(log)
}
