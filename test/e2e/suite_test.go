// SPDX-License-Identifier: Apache-2.0

// Package e2e tells whole stories on a real control plane: a registry, the
// real Flux controllers, real Deployments on simulated nodes, and the
// controller as a process of its own.
package e2e

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// plane and program are shared by the stories; each has namespaces of its own.
var (
	plane   *controlplane.ControlPlane
	program string
	process *controlplane.Process
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if program, err = scenario.BuildController(ctx, os.Stderr); err != nil {
		return 1, err
	}
	plane, err = controlplane.Start(ctx, controlplane.Options{
		Workloads: true, Flux: true, ImageScanner: true, CRDPaths: []string{scenario.CRDs()},
		LogDir: os.Getenv("E2E_LOGS"),
	})
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := plane.Stop(); err == nil {
			err = stopErr
		}
	}()
	if err := v1alpha1.AddToScheme(plane.Client().Scheme()); err != nil {
		return 1, err
	}
	if process, err = scenario.StartController(plane, program); err != nil {
		return 1, err
	}
	return m.Run(), nil
}
