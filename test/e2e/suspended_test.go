// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

func TestSuspendedImageRepositoryIsSaidEverywhere(t *testing.T) {
	s := newEnv(t)
	s.CreateFlux()
	s.Create(s.Rollout())
	s.Publish(s.Release("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)

	const suspended = "ImageRepository shop is suspended: new releases are not seen; resume it"
	repository := s.ImageRepository("")
	s.Change(repository, func() { repository.Spec.Suspend = true })
	s.Publish(s.Release("1.1.0"))
	said := s.Await("that the ImageRepository is suspended", func(r *v1alpha1.Rollout) bool {
		ready := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.ReadyCondition)
		return ready != nil && strings.HasSuffix(ready.Message, "; "+suspended)
	})
	if !apimeta.IsStatusConditionTrue(said.Status.Conditions, v1alpha1.ReadyCondition) {
		t.Errorf("the Rollout is not Ready: %s", env.Condition(said, v1alpha1.ReadyCondition))
	}
	alice := s.CommandLine(s.Namespace+":alice", masters)
	for verb, answer := range map[string]string{
		"kubectl get": under(t, alice, "kubectl")("get", "rollout", s.Name).Stdout,
		"explain":     alice.MustRun("explain", s.Name),
		"status":      alice.MustRun("status", s.Name),
		"get":         alice.MustRun("get"),
	} {
		if !strings.Contains(answer, suspended) {
			t.Errorf("%s does not say it:\n%s", verb, answer)
		}
	}
	if doctor := alice.Run("doctor").Stdout; !strings.Contains(doctor, "ImageRepository "+s.Namespace+"/shop: is suspended") {
		t.Errorf("doctor does not say it:\n%s", doctor)
	}
	s.Stays("Ready, and unchanged", func(r *v1alpha1.Rollout) bool { return r.ResourceVersion == said.ResourceVersion })

	s.Change(repository, func() { repository.Spec.Suspend = false })
	s.Scan()
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
}
