// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

func TestReleaseThatFluxCannotApplyNeverSucceeds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		wait    bool // the Kustomization waits for the health of what it applied
		again   bool // Flux tries again at the deadline
		bad     func(*env.Env) controlplane.Artifact
		because string // a part of Flux's message
	}{
		"refused by the API server": {
			bad:     func(s *env.Env) controlplane.Artifact { return s.BrokenRelease("3.0.0") },
			because: "spec.selector",
		},
		"never healthy": {
			wait:    true,
			bad:     func(s *env.Env) controlplane.Artifact { return s.GivesUpSoon().Release("3.0.0") },
			because: "Deployment/",
		},
		"not healthy within Flux's timeout of 30 seconds, and under way again": {
			wait:    true,
			again:   true,
			bad:     func(s *env.Env) controlplane.Artifact { return s.Release("3.0.0") },
			because: "Deployment/",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			if err := plane.BreakVersion(t.Context(), "3.0.0"); err != nil {
				t.Fatal(err)
			}
			s.CreateFlux()
			kustomization := s.Kustomization()
			s.Change(kustomization, func() {
				kustomization.Spec.Wait = tt.wait
				kustomization.Spec.RetryInterval.Duration = time.Second
			})
			s.Create(s.Rollout())
			s.Publish(s.Release("1.0.0"))
			s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)

			s.Publish(tt.bad(s))
			promoted := awaitFailedTarget(s, "3.0.0", tt.because).Current().Timestamp
			if tt.again {
				awaitAnotherTry(s)
			}
			// The deadline passes soon.
			s.SetDeployTimeout(time.Since(promoted.Time).Truncate(time.Second) + 2*time.Second)
			failed := s.AwaitState("3.0.0", v1alpha1.BakeFailed)
			if why := *failed.Current().BakeStatusMessage; !strings.Contains(why, tt.because) {
				t.Errorf("the failed promotion says %q, which does not say what Flux does: %q", why, tt.because)
			}
			if diff := cmp.Diff([]string{"2 3.0.0 Failed", "1 1.0.0 Succeeded"}, env.History(failed)); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnprotectedReleaseThatCannotBeAppliedGivesWayToAFix(t *testing.T) {
	s := newEnv(t)
	s.CreateFlux()
	s.Create(s.Rollout())
	s.Publish(s.Release("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)

	s.Publish(s.BrokenRelease("1.1.0"))
	awaitFailedTarget(s, "1.1.0", "spec.selector")
	s.Stays("Deploying", isHistory("2 1.1.0 Deploying", "1 1.0.0 Succeeded"))

	s.Publish(s.Release("1.1.1"))
	fixed := s.AwaitState("1.1.1", v1alpha1.BakeSucceeded)
	if diff := cmp.Diff([]string{"3 1.1.1 Succeeded", "2 1.1.0 Cancelled", "1 1.0.0 Succeeded"}, env.History(fixed)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

// awaitFailedTarget waits until the status repeats what Flux says about a version.
func awaitFailedTarget(s *env.Env, version, words string) *v1alpha1.Rollout {
	s.T.Helper()
	return s.Await("what Flux says of "+version, func(r *v1alpha1.Rollout) bool {
		applied := env.Condition(r, v1alpha1.TargetsAppliedCondition)
		return r.Current().Version.Tag == version &&
			strings.HasPrefix(applied, "TargetsApplied=False TargetFailed: ") && strings.Contains(applied, words)
	})
}

// awaitAnotherTry waits until Flux has begun again to apply the Kustomization.
func awaitAnotherTry(s *env.Env) {
	s.T.Helper()
	k := s.Kustomization()
	env.Eventually(s.T, "another try of Flux", func() (bool, string) {
		s.Read(k)
		return apimeta.IsStatusConditionPresentAndEqual(k.Status.Conditions, "Ready", metav1.ConditionUnknown), env.ConditionOf(k.Status.Conditions, "Ready")
	})
}
