// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// Cluster is a control plane that the tests of a package share.
type Cluster struct {
	Setting
	// Plane receives the control plane when it is started.
	Plane **Plane
}

// MainOf starts control planes that the tests of a package share, at the same time. Each
// has a controller of its own. It runs the tests and returns their exit code.
func MainOf(m *testing.M, clusters ...Cluster) int {
	before := goleak.IgnoreCurrent()
	code, err := runAll(m, clusters)
	if err != nil {
		fmt.Fprintln(os.Stderr, "control plane:", err)
		return 1
	}
	return fixture.ExitCode(code, before)
}

func runAll(m *testing.M, clusters []Cluster) (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer func() { err = errors.Join(err, endAll(clusters)) }()
	if err := startAll(ctx, clusters); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func startAll(ctx context.Context, clusters []Cluster) error {
	errs := make([]error, len(clusters))
	var group sync.WaitGroup
	for i, c := range clusters {
		group.Go(func() { *c.Plane, errs[i] = c.Start(ctx) })
	}
	group.Wait()
	return errors.Join(errs...)
}

func endAll(clusters []Cluster) error {
	errs := make([]error, len(clusters))
	var group sync.WaitGroup
	for i, c := range clusters {
		if *c.Plane != nil {
			group.Go(func() { errs[i] = (*c.Plane).End() })
		}
	}
	group.Wait()
	return errors.Join(errs...)
}
