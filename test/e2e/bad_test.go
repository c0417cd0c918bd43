// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// breakRelease publishes 1.0.0, which works, and 1.2.0, whose pods never become ready.
func breakRelease(t *testing.T) (s *env.Env, failed *v1alpha1.Rollout) {
	t.Helper()
	return breakVersion(t, "1.2.0")
}

// breakVersion does the same as breakRelease with another version than the one that is
// broken for all tests at once.
func breakVersion(t *testing.T, bad string) (s *env.Env, failed *v1alpha1.Rollout) {
	t.Helper()
	s = newEnv(t)
	if err := plane.BreakVersion(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	s.CreateFlux()
	s.Create(s.HealthCheck(), s.Rollout(s.Baked(time.Second, time.Minute)))
	s.Publish(s.Release("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	s.Publish(s.GivesUpSoon().Release(bad))
	return s, s.AwaitState(bad, v1alpha1.BakeFailed)
}

func TestBadReleaseFailsAndNamesTheCulprit(t *testing.T) {
	s, failed := breakRelease(t)
	checks := failed.Status.History[0].FailedHealthChecks
	if len(checks) != 1 || checks[0].Namespace != s.Namespace || checks[0].Name != s.Name || checks[0].Message == nil {
		t.Fatalf("failed checks: %+v, want the one of the application with a message", checks)
	}
	if culprit := "Deployment " + s.Namespace + "/" + s.Name; !strings.Contains(*checks[0].Message, culprit) {
		t.Errorf("the failed check says %q, which does not name %s", *checks[0].Message, culprit)
	}
}

func TestFixWaitsForAUserAfterAFailedBake(t *testing.T) {
	s, failed := breakRelease(t)
	s.Publish(s.Release("1.2.1"))
	held := s.AwaitCandidate("1.2.1")
	if ready := env.Condition(held, v1alpha1.ReadyCondition); !strings.Contains(ready, "1.2.1 waits") ||
		!strings.Contains(ready, "last good release: 1.0.0; roll back with spec.wantedVersion, or annotate with retry or unblock-failed") {
		t.Errorf("%q does not say that 1.2.1 waits, and what to do", ready)
	}
	s.Stays("at the failed 1.2.0", isHistory(env.History(failed)...))

	s.Pin("1.2.1")
	s.AwaitState("1.2.1", v1alpha1.BakeSucceeded)
	s.Pin("")
	s.Stays("at 1.2.1", isHistory("3 1.2.1 Succeeded", "2 1.2.0 Failed", "1 1.0.0 Succeeded"))
	if got, want := imageOf(s), "registry.example/shop:1.2.1"; got != want {
		t.Errorf("the Deployment runs %s, want %s", got, want)
	}
}

func TestBadReleaseDoesNotComeBackAfterARollback(t *testing.T) {
	s, _ := breakRelease(t)
	s.Pin("1.0.0")
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	s.Pin("")
	rolledBack := isHistory("3 1.0.0 Succeeded", "2 1.2.0 Failed", "1 1.0.0 Succeeded")
	s.Await("the pin gone", func(r *v1alpha1.Rollout) bool {
		return r.Status.ObservedGeneration == r.Generation && rolledBack(r)
	})
	s.Stays("at 1.0.0", rolledBack)

	s.Publish(s.Release("1.2.1")) // nothing blocks the fix now
	s.AwaitState("1.2.1", v1alpha1.BakeSucceeded)
	if got, want := imageOf(s), "registry.example/shop:1.2.1"; got != want {
		t.Errorf("the Deployment runs %s, want %s", got, want)
	}
}

// isHistory returns a function that reports whether a Rollout has exactly these
// promotions.
func isHistory(want ...string) func(*v1alpha1.Rollout) bool {
	return func(r *v1alpha1.Rollout) bool { return cmp.Equal(want, env.History(r)) }
}
