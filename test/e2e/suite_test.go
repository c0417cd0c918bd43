// SPDX-License-Identifier: Apache-2.0

// Package e2e tests complete scenarios on a real control plane: a registry, the real Flux
// controllers, real Deployments on simulated nodes, and the controller as a process of
// its own.
//
// The tests share the control plane. Each has a namespace and a repository of its own.
// The pods of a broken version are broken in all tests: 1.2.0 and 1.3.0 belong to the
// tests that use breakVersion of bad_test.go, 3.0.0 to that of unapplied_test.go, 4.1.0
// to 4.3.0 to those of helm_test.go, 4.5.0 to that of values_test.go, 5.1.0 to that of
// environments_test.go.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// testsAtOnce is greater than the number of processors, because tests mostly wait.
const testsAtOnce = "6"

// plane is shared by the tests.
var plane *env.Plane

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", testsAtOnce); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(env.Main(m, &plane, controlplane.Options{Workloads: true, Flux: true, Helm: true, ImageScanner: true}))
}

// newEnv returns an application for a test that runs in parallel with the others and does
// not disturb them.
func newEnv(t *testing.T) *env.Env {
	t.Helper()
	t.Parallel()
	return env.New(t, plane)
}
