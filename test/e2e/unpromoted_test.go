// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// The registry has a tag latest, as many have. Nothing may be promoted yet.

// beforeTheFirstRelease creates an application with a Rollout, an OCIRepository, and no
// release.
func beforeTheFirstRelease(t *testing.T, source func(scenario.App, string) *sourcev1.OCIRepository) *env.Env {
	t.Helper()
	s := newEnv(t)
	s.Push(s.Release("latest"))
	host := plane.Registry.Host()
	s.Create(s.NamespaceObject(), s.ImageRepository(host), s.ImagePolicy(">=1.0.0"), s.Rollout(), source(s.App, host), s.Kustomization())
	return s
}

// deployment returns the Deployment of the application; nil if there is none.
func deployment(s *env.Env) *appsv1.Deployment {
	s.T.Helper()
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	err := plane.Client().Get(s.T.Context(), client.ObjectKeyFromObject(object), object)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		s.T.Fatal(err)
	}
	return object
}

func TestFirstTagThatDoesNotExistDeploysNothingButThePromotedRelease(t *testing.T) {
	s := beforeTheFirstRelease(t, scenario.App.OCIRepositoryWithFirstTag)
	source := s.OCIRepository("")
	env.Eventually(t, "that Flux finds no such tag", func() (bool, string) {
		s.Read(source)
		ready := env.ConditionOf(source.Status.Conditions, v1alpha1.ReadyCondition)
		return strings.HasPrefix(ready, "Ready=False OCIArtifactPullFailed"), ready
	})
	s.Stays("without a promotion", func(r *v1alpha1.Rollout) bool {
		return r.Current() == nil && !strings.Contains(env.Condition(r, v1alpha1.TargetsAppliedCondition), v1alpha1.NotPromotedReason)
	})
	if found := deployment(s); found != nil {
		t.Fatalf("before the first promotion there is %v", found.Spec.Template.Spec.Containers)
	}

	s.Publish(s.Release("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	wasCreatedWith(s, "1.0.0")
}

// wasCreatedWith checks that the Deployment has a version, and never had another one.
func wasCreatedWith(s *env.Env, version string) {
	s.T.Helper()
	found := deployment(s)
	if image := found.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, ":"+version) || found.Generation != 1 {
		s.T.Errorf("the Deployment has %s at generation %d, want %s at generation 1: it was created with another version", image, found.Generation, version)
	}
}

func TestLatestThatRunsBeforeTheFirstPromotionIsSaid(t *testing.T) {
	s := beforeTheFirstRelease(t, scenario.App.OCIRepository)
	const runs = "NotPromoted: OCIRepository shop runs latest, which was never promoted: spec.ref.tag is not set, so Flux pulls latest " +
		"until the first promotion; to end this now, pin a release in spec.wantedVersion"
	s.Await("what runs", func(r *v1alpha1.Rollout) bool {
		return env.Condition(r, v1alpha1.TargetsAppliedCondition) == "TargetsApplied=False "+runs &&
			strings.HasPrefix(env.Condition(r, v1alpha1.ReadyCondition), "Ready=False "+runs+"; ImagePolicy shop names no release yet") &&
			len(r.Status.Targets) == 1 && r.Status.Targets[0].Version == "latest"
	})
	env.Eventually(t, "that latest is deployed", func() (bool, string) { return deployment(s) != nil, "" })
	commandLineSays(t, s, runs)

	s.Publish(s.Release("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	s.Await("that no more is said", func(r *v1alpha1.Rollout) bool {
		return strings.HasPrefix(env.Condition(r, v1alpha1.TargetsAppliedCondition), "TargetsApplied=True") && len(r.Status.Targets) == 2
	})
}

// commandLineSays checks that each verb about it says what runs.
func commandLineSays(t *testing.T, s *env.Env, runs string) {
	t.Helper()
	source := s.OCIRepository(plane.Registry.Host())
	source.APIVersion, source.Kind = sourcev1.GroupVersion.String(), sourcev1.OCIRepositoryKind
	manifest, err := yaml.Marshal(source)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(file, manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	alice := s.CommandLine(s.Namespace+":alice", masters)
	for verb, part := range map[string]string{
		"explain shop": "⚠ " + runs,
		"status shop":  "⚠ " + runs,
		"doctor":       fmt.Sprintf("✗ D304  OCIRepository %s/shop: runs latest, which was never promoted: the history of Rollout shop is empty", s.Namespace),
		"lint " + file: fmt.Sprintf("R217  OCIRepository %s/shop has no spec.ref.tag: Flux deploys latest until Rollout shop has promoted a release", s.Namespace),
	} {
		if answer := alice.Run(strings.Fields(verb)...); !strings.Contains(answer.Stdout, part) {
			t.Errorf("%s does not say %q:\n%+v", verb, part, answer)
		}
	}
}
