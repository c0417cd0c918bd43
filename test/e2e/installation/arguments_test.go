// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/fluxrollouts/rollout-controller/test/manifests"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

func TestControllerTakesTheArgumentsItIsGiven(t *testing.T) {
	program := filepath.Join(t.TempDir(), "rollout-controller")
	if err := scenario.BuildVersion(t.Context(), os.Stderr, program, "dev"); err != nil {
		t.Fatal(err)
	}
	byKustomize, err := manifests.WithComponents(t.Context(), everyComponent...)
	if err != nil {
		t.Fatal(err)
	}
	byHelm, err := manifests.Template(t.Context(), everyValue)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := manifests.Coordinator(t.Context(), manifests.Namespace, "--set=webhook.certManager.enabled=true")
	if err != nil {
		t.Fatal(err)
	}
	deployments, err := manifests.As[appsv1.Deployment](slices.Concat(byKustomize, byHelm, alone), "Deployment")
	if err != nil {
		t.Fatal(err)
	}
	for i := range deployments {
		args := deployments[i].Spec.Template.Spec.Containers[0].Args
		// Arguments are parsed in their order, and -help ends the program without an
		// error.
		if printed, err := exec.CommandContext(t.Context(), program, append(args, "-help")...).CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%.300s", args, err, printed)
		}
	}
	if err := exec.CommandContext(t.Context(), program, "--no-such-flag", "-help").Run(); err == nil {
		t.Error("it takes any argument")
	}
}
