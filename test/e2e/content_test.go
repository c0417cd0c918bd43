// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// reflections are the values of spec.digestReflectionPolicy of an ImagePolicy. They
// decide how the controller gets the digest of a tag: only from the registry, once from
// Flux, or repeatedly from Flux.
var reflections = []imagev1.ReflectionPolicy{imagev1.ReflectNever, imagev1.ReflectIfNotPresent, imagev1.ReflectAlways}

// newReflecting returns an application of which 1.0.0 was promoted.
func newReflecting(t *testing.T, policy imagev1.ReflectionPolicy) (s *env.Env, digest string) {
	t.Helper()
	s = newEnv(t)
	for _, object := range s.Flux(plane.Registry.Host()) {
		if p, ok := object.(*imagev1.ImagePolicy); ok {
			p.Spec.DigestReflectionPolicy = policy
			if policy == imagev1.ReflectAlways {
				p.Spec.Interval = &metav1.Duration{Duration: time.Second}
			}
		}
		s.Create(object)
	}
	s.Create(s.Rollout(s.Baked(2*time.Second, time.Minute)), s.HealthCheck())
	digest = s.Push(s.ConfigRelease("1.0.0"))
	s.Scan()
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	return s, digest
}

// pushAgain pushes other content under a tag.
func pushAgain(s *env.Env, tag string) string {
	again := s.ConfigRelease(tag)
	again.Files["more.yaml"] = strings.ReplaceAll(again.Files["configmap.yaml"], "name: "+s.Name, "name: more")
	return s.Push(again)
}

// pull makes Flux pull, as `flux reconcile source oci` does.
func pull(s *env.Env) {
	if err := plane.RequestReconcile(s.T.Context(), s.OCIRepository("")); err != nil {
		s.T.Fatal(err)
	}
}

// contents returns the entries of the history with their digests, newest first.
func contents(r *v1alpha1.Rollout) []string {
	var all []string
	for _, entry := range r.Status.History {
		digest := ""
		if entry.Version.Digest != nil {
			digest = *entry.Version.Digest
		}
		all = append(all, entry.Version.Tag+"@"+digest+" "+string(entry.State()))
	}
	return all
}

func TestTagThatIsPushedAgainBakesAgain(t *testing.T) {
	for _, policy := range reflections {
		t.Run(string(policy), func(t *testing.T) {
			s, digest := newReflecting(t, policy)
			other := pushAgain(s, "1.0.0")
			pull(s)
			done := s.Await("the end of a bake of what the tag points to now", func(r *v1alpha1.Rollout) bool {
				return len(r.Status.History) == 2 && !r.Current().State().Running()
			})
			if diff := cmp.Diff([]string{"1.0.0@" + other + " Succeeded", "1.0.0@" + digest + " Succeeded"}, contents(done)); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
			if baked := bakedFor(done.Current()); baked < 2*time.Second {
				t.Errorf("it baked for %s", baked)
			}
			reported := s.AwaitEvents(done, v1alpha1.TagMovedReason)
			if !strings.Contains(strings.Join(reported, "\n"), "it is "+other+" now, and was "+digest) {
				t.Errorf("it is reported as %q", reported)
			}
		})
	}
}

func TestOtherContentAtThePullIsNotTheRelease(t *testing.T) {
	for _, policy := range reflections {
		t.Run(string(policy), func(t *testing.T) {
			s, _ := newReflecting(t, policy)
			source := s.OCIRepository(plane.Registry.Host())
			s.Change(source, func() { source.Spec.Suspend = true })
			digest := s.Push(s.ConfigRelease("1.1.0"))
			s.Scan()
			s.Await("the digest of 1.1.0", func(r *v1alpha1.Rollout) bool {
				return r.Current().Version.Tag == "1.1.0" && r.Current().Version.Digest != nil
			})
			other := pushAgain(s, "1.1.0")
			s.Change(source, func() { source.Spec.Suspend = false })
			if policy == imagev1.ReflectAlways {
				done := s.Await("the end of a bake of what the tag points to now", func(r *v1alpha1.Rollout) bool {
					return len(r.Status.History) == 3 && !r.Current().State().Running()
				})
				want := []string{"1.1.0@" + other + " Succeeded", "1.1.0@" + digest + " Cancelled"}
				if diff := cmp.Diff(want, contents(done)[:2]); diff != "" {
					t.Errorf("history (-want +got):\n%s", diff)
				}
				return
			}
			s.Await("the mismatch", func(r *v1alpha1.Rollout) bool {
				return strings.Contains(env.Condition(r, v1alpha1.TargetsAppliedCondition), v1alpha1.DigestMismatchReason)
			})
			s.Stays("Deploying, for nothing is proven", func(r *v1alpha1.Rollout) bool {
				return len(r.Status.History) == 2 && r.Current().State() == v1alpha1.BakeDeploying
			})
		})
	}
}
