// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// CRDs returns the folder of the project's CustomResourceDefinitions.
func CRDs() string { return filepath.Join(parts.Root(), "config", "crd", "bases") }

// raceVariable is an environment variable. If it is set, the controller is built with the
// race detector. The tests that start the controller do not need the race detector
// themselves.
const raceVariable = "CONTROLLER_RACE"

// BuildController builds the controller and returns the path of the program. Two callers
// never build at the same time. Thus a program that one of them runs is not replaced
// halfway. When ctx ends, the build stops at once and leaves nothing behind: the
// temporary files of the go command are in a folder that is removed here.
func BuildController(ctx context.Context, progress io.Writer) (string, error) {
	return buildController(ctx, progress, wantsRaceDetector())
}

// BuildControllerAsShipped is BuildController without the race detector.
func BuildControllerAsShipped(ctx context.Context, progress io.Writer) (string, error) {
	return buildController(ctx, progress, false)
}

func wantsRaceDetector() bool { return os.Getenv(raceVariable) != "" }

func buildController(ctx context.Context, progress io.Writer, race bool) (string, error) {
	path := filepath.Join(parts.Root(), "bin", "rollout-controller")
	if race {
		path += "-race"
	}
	unlock, err := parts.Lock(ctx, progress, "controller")
	if err != nil {
		return "", err
	}
	defer unlock()
	return path, compile(ctx, progress, path, "dev", race)
}

// BuildVersion builds the controller as BuildController does, to the caller's path and
// with the caller's version.
func BuildVersion(ctx context.Context, progress io.Writer, path, version string) error {
	return compile(ctx, progress, path, version, wantsRaceDetector())
}

// compile builds the controller. It differs from the one that is shipped in one thing:
// HealthChecks may ask loopback addresses, because the tests' servers have no others.
func compile(ctx context.Context, progress io.Writer, path, version string, race bool) error {
	folder, err := os.MkdirTemp("", "rollout-controller-build-*")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-tags=loopback", "-ldflags=-X main.version="+version, "-o", path)
	build.Env = append(os.Environ(), "GOTMPDIR="+folder)
	if race {
		build.Args = append(build.Args, "-race")
		build.Env = append(build.Env, "CGO_ENABLED=1")
	}
	build.Args = append(build.Args, "./cmd/controller")
	build.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	build.Cancel = func() error { return syscall.Kill(-build.Process.Pid, syscall.SIGKILL) }
	build.Dir, build.Stdout, build.Stderr = parts.Root(), progress, progress
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the controller: %w", err)
	}
	return nil
}

// ControllerName is the process name of the controller.
const ControllerName = "rollout-controller"

// StartController runs the controller against the control plane, as its own process that
// can be killed and started again. It has only the permissions of the roles in
// config/default and in some of config/components.
func StartController(ctx context.Context, plane *controlplane.ControlPlane, path string, components []string, args ...string) (*controlplane.Process, error) {
	kubeconfig, err := Install(ctx, plane, Account, components...)
	if err != nil {
		return nil, err
	}
	return StartControllerAs(plane, ControllerName, path, kubeconfig, nil, args...)
}

// StartControllerAs runs a controller under a name, as the user of the kubeconfig. env is
// added to the environment of the shipped Deployment.
func StartControllerAs(plane *controlplane.ControlPlane, name, path, kubeconfig string, env []string, args ...string) (*controlplane.Process, error) {
	flags := append([]string{"--kubeconfig=" + kubeconfig, "--health-probe-bind-address=0"}, args...)
	return plane.StartProcess(name, path, flags, append([]string{"RUNTIME_NAMESPACE=" + Namespace}, env...))
}
