// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// CRDs is the folder of the project's custom resource definitions.
func CRDs() string { return filepath.Join(parts.Root(), "config", "crd", "bases") }

// BuildController builds the controller and returns the path of the program.
func BuildController(ctx context.Context, progress io.Writer) (string, error) {
	path := filepath.Join(parts.Root(), "bin", "rollout-controller")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/controller")
	build.Dir, build.Stdout, build.Stderr = parts.Root(), progress, progress
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("build the controller: %w", err)
	}
	return path, nil
}

// StartController runs the controller against the control plane, as a process
// of its own that can be killed and started again.
func StartController(plane *controlplane.ControlPlane, path string, args ...string) (*controlplane.Process, error) {
	flags := append([]string{"--kubeconfig=" + plane.Kubeconfig(), "--health-probe-bind-address=0"}, args...)
	return plane.StartProcess("rollout-controller", path, flags, nil)
}
