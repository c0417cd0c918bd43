// SPDX-License-Identifier: Apache-2.0

package abuse

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// pageMemory is the memory that the page has in the chart.
const pageMemory = 256 << 20

// The page keeps a row of each Rollout, whatever else is in it.
func TestPageOfRolloutsOfAMegabyte(t *testing.T) {
	x, a := begin(t, "creates 60 Rollouts of a megabyte, and changes them, while the page of the cluster shows them"), newAbuser(t)
	program, kubeconfig := buildPage(t), pageAccount(t)
	before := startPage(t, program, kubeconfig)
	const count = 60
	for i := range count {
		rollout := a.Another(fmt.Sprint("large-", i)).Rollout()
		rollout.Spec.Suspend = true
		rollout.Labels = labels(2_000)
		a.makes(rollout)
		a.changes(rollout, `{"metadata":{"annotations":{"changed":"yes"}}}`)
	}
	x.passes(count, "the page shows a row of each")
	after := startPage(t, program, kubeconfig) // it reads all of them at once
	for name, p := range map[string]*memory{"running": before, "started again": after} {
		if most := p.most(); most == 0 || most > pageMemory {
			t.Errorf("%s, the page needs %d MiB, and has %d", name, most>>20, pageMemory>>20)
		}
	}
}

func buildPage(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rollout-web")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", path, "./cmd/rollout-web")
	build.Dir = parts.Root()
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the page: %v\n%s", err, said)
	}
	return path
}

// pageAccount returns a kubeconfig of an account that has the rights of the page.
func pageAccount(t *testing.T) string {
	t.Helper()
	objects, err := manifests.WithComponents(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	roles, err := manifests.As[rbacv1.ClusterRole](objects, "ClusterRole")
	if err != nil {
		t.Fatal(err)
	}
	e := env.New(t, plane)
	name := "page-of-" + e.Namespace
	for _, role := range roles {
		if role.Name == "rollout-controller-web-role" {
			e.Create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: role.Rules})
		}
	}
	e.Create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: scenario.Namespace, Name: name}},
	})
	kubeconfig, err := scenario.Credentials(plane.ControlPlane, name)
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// startPage starts the page, waits until it has read all Rollouts, and watches its memory.
func startPage(t *testing.T, program, kubeconfig string) *memory {
	t.Helper()
	address, err := controlplane.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	probes, err := controlplane.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	page := exec.CommandContext(ctx, program, "--public-url=https://rollouts.example", "--bind-address="+address, "--health-probe-bind-address="+probes)
	page.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, fmt.Sprintf("GOMEMLIMIT=%d", pageMemory))
	page.Stderr = t.Output()
	if err := page.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = page.Wait() // it was killed
	})
	watched := watchMemoryOf(t, page.Process.Pid)
	env.Eventually(t, "a page that has read all Rollouts", func() (bool, string) {
		response, err := http.Get("http://" + probes + "/readyz")
		if err != nil {
			return false, err.Error()
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK, response.Status
	})
	return watched
}
