// SPDX-License-Identifier: Apache-2.0

// Package stage is what the end-to-end stories are played on: a control plane
// on which the controller runs, and per story an application with a namespace
// and a repository of its own.
package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// Plane is a control plane with the project's kinds, on which the controller
// runs.
type Plane struct {
	*controlplane.ControlPlane
	// Controller can be killed and started again.
	Controller *controlplane.Process
}

// Start builds what is missing, starts it and runs the controller with the
// given flags. Whoever calls it stops the control plane.
func Start(ctx context.Context, options controlplane.Options, args ...string) (*Plane, error) {
	ctrl.SetLogger(logr.Discard())
	program, err := scenario.BuildController(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	options.CRDPaths, options.LogDir = []string{scenario.CRDs()}, os.Getenv("E2E_LOGS")
	started, err := controlplane.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	plane := &Plane{ControlPlane: started}
	if err := plane.runController(program, args); err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	return plane, nil
}

func (p *Plane) runController(program string, args []string) error {
	if err := v1alpha1.AddToScheme(p.Client().Scheme()); err != nil {
		return fmt.Errorf("register the project's kinds: %w", err)
	}
	var err error
	p.Controller, err = scenario.StartController(p.ControlPlane, program, args...)
	return err
}

// Main starts a control plane that the tests of a package share, runs them and
// returns their exit code.
func Main(m *testing.M, shared **Plane, options controlplane.Options, args ...string) int {
	code, err := runAll(m, shared, options, args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "control plane:", err)
		return 1
	}
	return code
}

func runAll(m *testing.M, shared **Plane, options controlplane.Options, args []string) (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	plane, err := Start(ctx, options, args...)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	*shared = plane
	return m.Run(), nil
}

// StartFor starts a control plane for one test, and stops it after it.
func StartFor(t *testing.T, options controlplane.Options, args ...string) *Plane {
	t.Helper()
	plane, err := Start(t.Context(), options, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	return plane
}
