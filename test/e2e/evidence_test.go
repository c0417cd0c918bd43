// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

func TestStaleHealthyDoesNotStartTheBake(t *testing.T) {
	s := newEnv(t)
	s.CreateFlux()
	check := foreignCheck(s)
	s.Create(check, s.Rollout(s.Baked(time.Second, time.Minute)))
	s.Publish(s.ConfigRelease("1.0.0"))
	awaitReset(s, check)
	say(s, check, v1alpha1.HealthStatusHealthy)
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)

	kustomization := s.Kustomization()
	s.Change(kustomization, func() { kustomization.Spec.Suspend = true })
	s.Publish(s.ConfigRelease("1.1.0"))
	s.AwaitState("1.1.0", v1alpha1.BakeDeploying)
	s.Stays("Deploying, the check untouched, while Flux has not applied 1.1.0", func(r *v1alpha1.Rollout) bool {
		s.Read(check)
		return r.Current().State() == v1alpha1.BakeDeploying && check.Status.Status == v1alpha1.HealthStatusHealthy
	})

	s.Change(kustomization, func() { kustomization.Spec.Suspend = false })
	awaitReset(s, check)
	s.Stays("Deploying until the check speaks anew", func(r *v1alpha1.Rollout) bool {
		return r.Current().State() == v1alpha1.BakeDeploying
	})
	say(s, check, v1alpha1.HealthStatusHealthy)
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
}

func TestCheckThatWasHealthyAllAlongDoesNotHoldUp(t *testing.T) {
	s := newEnv(t)
	s.CreateFlux()
	check := s.HealthCheck()
	s.Create(check, s.Rollout(s.Baked(time.Second, time.Minute)))
	s.Publish(s.Release("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	s.Read(check)
	if check.Status.Status != v1alpha1.HealthStatusHealthy {
		t.Fatalf("before the release the check is %s", check.Status.Status)
	}

	unchanged := s.Release("1.1.0")
	unchanged.Files = s.Release("1.0.0").Files // no object changes
	s.Publish(unchanged)
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
}

// foreignCheck returns a HealthCheck whose status the test writes, as a controller of its
// own would.
func foreignCheck(s *env.Env) *v1alpha1.HealthCheck {
	check, class := s.HealthCheck(), "example"
	check.Spec.Class, check.Annotations = &class, nil
	return check
}

// say writes only the status, as some controllers do.
func say(s *env.Env, check *v1alpha1.HealthCheck, health v1alpha1.HealthStatus) {
	s.T.Helper()
	s.ChangeStatus(check, func() {
		check.Status.Status = health
		if health == v1alpha1.HealthStatusUnhealthy {
			check.Status.LastErrorTime = &metav1.Time{Time: time.Now()}
		}
	})
}

// awaitReset waits until the check has been reset for the current promotion, and has the
// mark of the reset.
func awaitReset(s *env.Env, check *v1alpha1.HealthCheck) {
	s.T.Helper()
	mark := check.Annotations[markOf(s)]
	env.Eventually(s.T, "the reset of the check", func() (bool, string) {
		s.Read(check)
		now := check.Annotations[markOf(s)]
		return check.Status.Status == v1alpha1.HealthStatusPending && now != mark, string(check.Status.Status) + " " + now
	})
}

func markOf(s *env.Env) string { return v1alpha1.ResetAnnotationPrefix + string(s.Live().UID) }
