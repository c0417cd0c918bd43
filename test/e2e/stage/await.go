// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"fmt"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const (
	// calm is how long a story watches that nothing happens.
	calm = 3 * time.Second
	// pace is how often it looks.
	pace = 100 * time.Millisecond
)

// Eventually looks until the answer is yes, and says what it last saw if that
// never comes.
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

// Live returns the application's Rollout as it is stored.
func (s *Stage) Live() *v1alpha1.Rollout {
	s.T.Helper()
	rollout := s.Rollout()
	s.Read(rollout)
	return rollout
}

// Await waits until the Rollout is as wanted.
func (s *Stage) Await(what string, wanted func(*v1alpha1.Rollout) bool) *v1alpha1.Rollout {
	s.T.Helper()
	var rollout *v1alpha1.Rollout
	Eventually(s.T, s.Namespace+"/"+s.Name+": "+what, func() (bool, string) {
		rollout = s.Live()
		return wanted(rollout), describe(rollout)
	})
	return rollout
}

// AwaitState waits until a version is the current one and in a bake state.
func (s *Stage) AwaitState(version string, state v1alpha1.BakeStatus) *v1alpha1.Rollout {
	s.T.Helper()
	return s.Await(fmt.Sprintf("%s %s", version, state), func(r *v1alpha1.Rollout) bool {
		current := r.Current()
		return current != nil && current.Version.Tag == version && current.State() == state
	})
}

// AwaitOffer waits until the ImagePolicy names a version.
func (s *Stage) AwaitOffer(version string) {
	s.T.Helper()
	policy := s.ImagePolicy("")
	Eventually(s.T, "an ImagePolicy that names "+version, func() (bool, string) {
		s.Read(policy)
		return policy.Status.LatestRef != nil && policy.Status.LatestRef.Tag == version, fmt.Sprintf("%+v", policy.Status)
	})
}

// AwaitCandidate waits until a version is known and not promoted.
func (s *Stage) AwaitCandidate(version string) *v1alpha1.Rollout {
	s.T.Helper()
	return s.Await("the candidate "+version, func(r *v1alpha1.Rollout) bool {
		return len(r.Status.ReleaseCandidates) > 0 && r.Status.ReleaseCandidates[0].Tag == version
	})
}

// Stays makes sure that nothing happens to the Rollout for a while. What
// may still be on its way comes first.
func (s *Stage) Stays(what string, holds func(*v1alpha1.Rollout) bool) {
	s.T.Helper()
	for start := time.Now(); time.Since(start) < calm; time.Sleep(pace) {
		if rollout := s.Live(); !holds(rollout) {
			s.T.Fatalf("%s: it did not stay %s; seen:\n%s", s.Name, what, describe(rollout))
		}
	}
}
