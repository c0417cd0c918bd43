// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// CommandLineName is the name under which kubectl finds the command line.
const CommandLineName = "kubectl-rollouts"

// BuildCommandLine builds the command line, under the name by which kubectl finds it, and
// returns its path.
func BuildCommandLine(ctx context.Context, progress io.Writer) (string, error) {
	unlock, err := parts.Lock(ctx, progress, "commandline")
	if err != nil {
		return "", err
	}
	defer unlock()
	program := filepath.Join(parts.Root(), "bin", "commandline", CommandLineName)
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", program, "./cmd/flux-rollout")
	build.Dir, build.Stdout, build.Stderr = parts.Root(), progress, progress
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("build the command line: %w", err)
	}
	return program, nil
}
