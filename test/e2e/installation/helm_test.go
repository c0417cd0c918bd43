// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

func TestHelmInstallsUpgradesAndUninstallsTheController(t *testing.T) {
	chart := publishChart(t)
	install := []string{"install", manifests.Release, chart, "--version=0.1.0", "--plain-http", "--create-namespace", "--wait"}
	takeOwnership := "--take-ownership" // of CRDs that another installation has left
	helm(t, append(install, takeOwnership)...)
	awaitController(t, 1, image+":v0.1.0")
	rollout := createRollout(t, "installed-by-helm")

	helm(t, "upgrade", manifests.Release, chart, "--version=0.1.0", "--plain-http", "--wait", takeOwnership,
		"--set=replicas=2,image.tag=v0.1.1,deploymentCoordination.enabled=true,statefulSetRollout.enabled=true")
	awaitController(t, 2, image+":v0.1.1")
	stillThere(t, rollout)

	// A Job runs first and stops the controller. In this control plane nothing runs Jobs.
	helm(t, "uninstall", manifests.Release, "--wait")
	dropCleanup(t)
	awaitUninstalled(t, true)
	stillThere(t, rollout)

	helm(t, install...)
	awaitController(t, 1, image+":v0.1.0")
	stillThere(t, rollout)
	helm(t, "uninstall", manifests.Release, "--wait")
	awaitUninstalled(t, true)
}

// dropCleanup does the last step of the Job: Helm keeps the rights that the Job needs
// itself.
func dropCleanup(t *testing.T) {
	t.Helper()
	name := "rollout-controller-deploymentcoordination-cleanup-role"
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name + "binding"}},
	} {
		if err := plane.Client().Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// publishChart pushes the chart as a release does, and returns its address.
func publishChart(t *testing.T) string {
	t.Helper()
	charts := plane.Registry.Host() + "/charts"
	printed := run(t, "push-chart", "REPOSITORY="+charts, "HELM_FLAGS=--plain-http")
	if !strings.HasPrefix(printed, charts+"/rollout-controller@sha256:") {
		t.Fatalf("make push-chart printed %q", printed)
	}
	if again := run(t, "push-chart", "REPOSITORY="+charts, "HELM_FLAGS=--plain-http"); again != printed {
		t.Errorf("pushed again the chart is %q, was %q", again, printed)
	}
	return "oci://" + charts + "/rollout-controller"
}

// helm runs Helm for the namespace of the controller.
func helm(t *testing.T, args ...string) {
	t.Helper()
	helmIn(t, manifests.Namespace, args...)
}

// helmIn runs Helm as an administrator, with files of its own.
func helmIn(t *testing.T, namespace string, args ...string) {
	t.Helper()
	home := t.TempDir()
	printed, err := manifests.Helm(t.Context(), append(args,
		"--kubeconfig="+plane.Kubeconfig(), "--namespace="+namespace, "--registry-config="+filepath.Join(home, "registry.json"),
		"--repository-cache="+filepath.Join(home, "cache"), "--repository-config="+filepath.Join(home, "repositories.yaml"))...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", args[0], err, printed)
	}
}
