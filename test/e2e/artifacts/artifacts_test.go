// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// application returns an application whose Kustomization takes an artifact of a generator.
func application(t *testing.T, generatorOf func(name string) *fixture.GeneratorBuilder) *env.Env {
	t.Helper()
	s := env.New(t, plane)
	for _, object := range s.Flux(plane.Registry.Host()) {
		if k, is := object.(*kustomizev1.Kustomization); is {
			k.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.ExternalArtifactKind, Name: s.Name}
		}
		s.Create(object)
	}
	generator := generatorOf(s.Name).InNamespace(s.Namespace).Obj()
	generator.UID, generator.Generation = "", 0
	s.Create(generator, s.Rollout())
	return s
}

// pulls waits until Flux has pulled a version.
func pulls(t *testing.T, s *env.Env, version string) *sourcev1.OCIRepository {
	t.Helper()
	source := s.OCIRepository("")
	env.Eventually(t, "an OCIRepository with "+version, func() (bool, string) {
		s.Read(source)
		artifact := source.Status.Artifact
		return artifact != nil && strings.HasPrefix(artifact.Revision, version+"@"), ""
	})
	return source
}

// builds plays source-watcher: each artifact is what source-controller has pulled, under a
// revision of its own, and the status of the generator follows.
func builds(t *testing.T, s *env.Env, source *sourcev1.OCIRepository, others ...client.Object) string {
	t.Helper()
	stored := &generatorv1.ArtifactGenerator{}
	stored.Namespace, stored.Name = s.Namespace, s.Name
	s.Read(stored)
	builder := fixture.GeneratorFrom(stored)
	revision := ""
	for _, made := range builder.Builds(nil, append(others, source)...) {
		revision = made.Status.Artifact.Revision
		content := source.Status.Artifact.DeepCopy()
		content.Revision = revision
		store(t, s, made, content)
	}
	stored.Status = builder.Obj().Status
	for i := range stored.Status.Inventory {
		stored.Status.Inventory[i].Digest = source.Status.Artifact.Digest
	}
	if err := plane.Client().Status().Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	return revision
}

func store(t *testing.T, s *env.Env, made *sourcev1.ExternalArtifact, content *meta.Artifact) {
	t.Helper()
	err := plane.Client().Create(t.Context(), made.DeepCopy())
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	stored := &sourcev1.ExternalArtifact{}
	stored.Namespace, stored.Name = made.Namespace, made.Name
	s.Read(stored)
	stored.Status.Artifact, stored.Status.Conditions = content, fixture.ReadyAt(stored.Generation)
	if err := plane.Client().Status().Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
}

func stateOf(r *v1alpha1.Rollout) v1alpha1.TargetStatus {
	for _, t := range r.Status.Targets {
		if t.Kind != sourcev1.OCIRepositoryKind {
			return t
		}
	}
	return v1alpha1.TargetStatus{}
}

func takes(revision string) func(string) *fixture.GeneratorBuilder {
	return func(name string) *fixture.GeneratorBuilder {
		return fixture.MakeGenerator(name).Takes("app", sourcev1.OCIRepositoryKind, name).Makes(name, revision, "app")
	}
}

// A release is applied only once what Flux applies is made of it.
func TestReleaseIsProvenThroughAnArtifact(t *testing.T) {
	for name, revision := range map[string]string{"by revision": "@app", "by content": ""} {
		t.Run(name, func(t *testing.T) {
			s := application(t, takes(revision))
			s.Publish(s.ConfigRelease("1.0.0"))
			source := pulls(t, s, "1.0.0")
			s.Await("the missing artifact", func(r *v1alpha1.Rollout) bool {
				return stateOf(r).Reason == v1alpha1.TargetSourceMissing
			})
			builds(t, s, source)
			s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)

			s.Publish(s.ConfigRelease("1.1.0"))
			source = pulls(t, s, "1.1.0")
			s.Stays("the release before", func(r *v1alpha1.Rollout) bool {
				return r.Current().Version.Tag == "1.0.0" || stateOf(r).State == v1alpha1.TargetPending
			})
			made := builds(t, s, source)
			s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
			k := s.Kustomization()
			if s.Read(k); k.Status.LastAppliedRevision != made {
				t.Errorf("Flux has applied %q, not %q", k.Status.LastAppliedRevision, made)
			}
		})
	}
}

// A chart may come as an artifact, too.
func TestChartIsProvenThroughAnArtifact(t *testing.T) {
	for name, revision := range map[string]string{"by revision": "@app", "by content": ""} {
		t.Run(name, func(t *testing.T) {
			s := env.New(t, plane)
			host, chart := plane.Registry.Host(), s.HelmRelease()
			chart.Spec.ChartRef = &helmv2.CrossNamespaceSourceReference{Kind: sourcev1.ExternalArtifactKind, Name: s.Name}
			chart.Spec.Install, chart.Spec.Upgrade = &helmv2.Install{DisableWait: true}, &helmv2.Upgrade{DisableWait: true} // nothing runs pods here
			generator := takes(revision)(s.Name).InNamespace(s.Namespace).Obj()
			generator.UID, generator.Generation = "", 0
			s.Create(s.NamespaceObject(), s.ImageRepository(host), s.ImagePolicy(">=1.0.0"), s.ChartRepository(host), chart, generator, s.Rollout())
			for _, version := range []string{"1.0.0", "1.1.0"} {
				if err := plane.Registry.PushChart(t.Context(), s.Chart(version)); err != nil {
					t.Fatal(err)
				}
				s.Scan()
				source := pulls(t, s, version)
				s.Stays("without it", func(r *v1alpha1.Rollout) bool {
					return r.Current().Version.Tag != version || r.Current().State() == v1alpha1.BakeDeploying
				})
				builds(t, s, source)
				s.AwaitState(version, v1alpha1.BakeSucceeded)
				if s.Read(chart); !strings.HasPrefix(chart.Status.History.Latest().ChartVersion, version) {
					t.Errorf("Helm has deployed %+v", chart.Status.History.Latest())
				}
			}
		})
	}
}

// With the revision of another source, Flux is Ready without the release. That proves nothing.
func TestRevisionOfAnotherSourceIsNoProof(t *testing.T) {
	s := application(t, func(name string) *fixture.GeneratorBuilder {
		return fixture.MakeGenerator(name).Takes("app", sourcev1.OCIRepositoryKind, name).
			Takes("config", sourcev1.GitRepositoryKind, "config").Makes(name, "@config", "app", "config")
	})
	config := &sourcev1.GitRepository{}
	config.Name, config.Status.Artifact = "config", fixture.Artifact("main@sha1:1")
	s.Publish(s.ConfigRelease("1.0.0"))
	made := builds(t, s, pulls(t, s, "1.0.0"), config)
	k := s.Kustomization()
	env.Eventually(t, "a Kustomization that has applied it", func() (bool, string) {
		s.Read(k)
		return k.Status.LastAppliedRevision == made, k.Status.LastAppliedRevision
	})
	shown := s.Await("the reason", func(r *v1alpha1.Rollout) bool { return stateOf(r).Reason == v1alpha1.TargetArtifactUnproven })
	if message := stateOf(shown).Message; !strings.HasSuffix(message, "remove its revision, or set it to @app") {
		t.Errorf("no remedy in %q", message)
	}
	s.Stays("Pending", func(r *v1alpha1.Rollout) bool { return stateOf(r).State == v1alpha1.TargetPending })
}
