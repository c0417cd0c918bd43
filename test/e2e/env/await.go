// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const (
	// calm is how long a test checks that nothing happens.
	calm = 3 * time.Second
	// pace is the time between two checks.
	pace = 100 * time.Millisecond
)

// Eventually calls look until it is done. If that never happens, the test fails with the
// state that it last saw.
func Eventually(t *testing.T, what string, look func() (done bool, seen string)) {
	t.Helper()
	for start := time.Now(); ; time.Sleep(pace) {
		done, seen := look()
		if done {
			return
		}
		if time.Since(start) > fixture.Patience || t.Context().Err() != nil {
			t.Fatalf("never saw %s; last seen:\n%s", what, seen)
		}
	}
}

// Live returns the application's Rollout from the API server.
func (e *Env) Live() *v1alpha1.Rollout {
	e.T.Helper()
	rollout := e.Rollout()
	e.Read(rollout)
	return rollout
}

// Await waits until the Rollout is in the wanted state.
func (e *Env) Await(what string, wanted func(*v1alpha1.Rollout) bool) *v1alpha1.Rollout {
	e.T.Helper()
	var rollout *v1alpha1.Rollout
	Eventually(e.T, e.Namespace+"/"+e.Name+": "+what, func() (bool, string) {
		rollout = e.Live()
		return wanted(rollout), describe(rollout)
	})
	return rollout
}

// AwaitState waits until a version is the current one and in a bake state.
func (e *Env) AwaitState(version string, state v1alpha1.BakeStatus) *v1alpha1.Rollout {
	e.T.Helper()
	return e.Await(fmt.Sprintf("%s %s", version, state), func(r *v1alpha1.Rollout) bool {
		current := r.Current()
		return current != nil && current.Version.Tag == version && current.State() == state
	})
}

// AwaitOffer waits until the ImagePolicy names a version.
func (e *Env) AwaitOffer(version string) {
	e.T.Helper()
	policy := e.ImagePolicy("")
	Eventually(e.T, "an ImagePolicy that names "+version, func() (bool, string) {
		e.Read(policy)
		return policy.Status.LatestRef != nil && policy.Status.LatestRef.Tag == version, fmt.Sprintf("%+v", policy.Status)
	})
}

// AwaitCandidate waits until a version is known and not promoted.
func (e *Env) AwaitCandidate(version string) *v1alpha1.Rollout {
	e.T.Helper()
	return e.Await("the candidate "+version, func(r *v1alpha1.Rollout) bool {
		return len(r.Status.ReleaseCandidates) > 0 && r.Status.ReleaseCandidates[0].Tag == version
	})
}

// AwaitClosed waits until the Rollout shows a closed gate. From then on the gate holds
// releases, or the schedule that it is a copy of. Before that the controller may see a
// release first that was published later.
func (e *Env) AwaitClosed() {
	e.T.Helper()
	e.Await("a closed gate", func(r *v1alpha1.Rollout) bool {
		return slices.ContainsFunc(r.Status.Gates, func(g v1alpha1.RolloutGateStatusSummary) bool { return g.Passing != nil && !*g.Passing })
	})
}

// Stays checks that nothing happens to the Rollout for a while. That is long enough for
// changes that are still in progress.
func (e *Env) Stays(what string, holds func(*v1alpha1.Rollout) bool) {
	e.T.Helper()
	for start := time.Now(); time.Since(start) < calm; time.Sleep(pace) {
		if rollout := e.Live(); !holds(rollout) {
			e.T.Fatalf("%s: it did not stay %s; seen:\n%s", e.Name, what, describe(rollout))
		}
	}
}
