// SPDX-License-Identifier: Apache-2.0

package quiet

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// TestRolloutsThatComeAndGoLeaveNoGoroutines compares with the number of goroutines after
// a first Rollout, because some connections and watches begin when they are first needed.
func TestRolloutsThatComeAndGoLeaveNoGoroutines(t *testing.T) {
	goroutines := func() float64 { return env.Metric(t, metricsAddress, "go_goroutines") }
	comeAndGo(t, 1)
	awaitQuiet(t)
	before := goroutines()
	comeAndGo(t, 5)
	env.Eventually(t, fmt.Sprintf("%.0f goroutines, as there were before", before), func() (bool, string) {
		now := goroutines()
		return now <= before, fmt.Sprintf("%.0f", now)
	})
}

// comeAndGo creates a number of applications, promotes two releases of each and
// deletes them.
func comeAndGo(t *testing.T, number int) {
	t.Helper()
	for range number {
		s := env.New(t, plane)
		s.CreateFlux()
		s.Create(s.HealthCheck(), s.Rollout(s.Baked(time.Second, time.Minute)))
		for _, version := range []string{"1.0.0", "1.1.0"} {
			s.Publish(s.ConfigRelease(version))
			s.AwaitState(version, v1alpha1.BakeSucceeded)
		}
		// An object that still names a deleted Rollout would be reported later.
		for _, o := range []client.Object{s.Kustomization(), s.OCIRepository(""), s.Rollout(), s.HealthCheck()} {
			s.Delete(o)
		}
	}
}
