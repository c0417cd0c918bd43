// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture/gitserver"
)

// fromGit returns an application whose Kustomization applies a GitRepository, which gets the
// tag of each release, and the server of this repository.
func fromGit(t *testing.T) (*env.Env, *gitserver.Server) {
	t.Helper()
	s, server := newEnv(t), gitserver.Start(t)
	for _, object := range s.Flux(plane.Registry.Host()) {
		if _, isOCI := object.(*sourcev1.OCIRepository); !isOCI && object.GetName() != "" {
			s.Create(object)
		}
	}
	kustomization := s.Kustomization()
	s.Change(kustomization, func() { kustomization.Spec.SourceRef.Kind = sourcev1.GitRepositoryKind })
	s.Create(gitRepository(s, server.URL))
	s.Create(s.Rollout())
	return s, server
}

func gitRepository(s *env.Env, url string) *sourcev1.GitRepository {
	return &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, Annotations: map[string]string{v1alpha1.RolloutAnnotation: s.Name}},
		Spec: sourcev1.GitRepositorySpec{
			URL: url, Interval: metav1.Duration{Duration: time.Hour}, Reference: &sourcev1.GitRepositoryRef{Tag: "none-yet"},
		},
	}
}

// pushImage pushes a release to the registry only.
func pushImage(s *env.Env, version string) controlplane.Artifact {
	release := s.ConfigRelease(version)
	s.Push(release)
	s.Scan()
	return release
}

// runsFromGit returns the revisions that the GitRepository has pulled, and the Kustomization has
// applied.
func runsFromGit(s *env.Env) []string {
	source, kustomization := gitRepository(s, ""), s.Kustomization()
	s.Read(source)
	s.Read(kustomization)
	return []string{source.Status.Artifact.Revision, kustomization.Status.LastAppliedRevision}
}

func TestReleaseRunsFromGit(t *testing.T) {
	s, server := fromGit(t)
	commit := server.Commit(s.ConfigRelease("1.0.0").Files)
	server.Tag("1.0.0")
	pushImage(s, "1.0.0")
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	first := "1.0.0@sha1:" + commit
	if diff := cmp.Diff([]string{first, first}, runsFromGit(s)); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}

	// The image comes before the tag in Git.
	second := pushImage(s, "1.1.0")
	s.Await("the words of Flux for a tag that is missing", func(r *v1alpha1.Rollout) bool {
		return len(r.Status.Targets) == 2 && r.Status.Targets[0].State == v1alpha1.TargetPending && r.Status.Targets[0].Reason == v1alpha1.TargetArtifactFailed &&
			strings.Contains(r.Status.Targets[0].Message, "refs/tags/1.1.0")
	})
	if diff := cmp.Diff([]string{first, first}, runsFromGit(s)); diff != "" {
		t.Errorf("runs without the tag (-want +got):\n%s", diff)
	}
	commit = server.Commit(second.Files)
	server.Tag("1.1.0")
	done := s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	if diff := cmp.Diff([]string{"1.1.0@sha1:" + commit, "1.1.0@sha1:" + commit}, runsFromGit(s)); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	digest := done.Current().Version.Digest

	// Somebody moves the tag.
	moved := server.Commit(map[string]string{"more.yaml": strings.ReplaceAll(second.Files["configmap.yaml"], "name: "+s.Name, "name: more")})
	server.Tag("1.1.0")
	if err := plane.RequestReconcile(t.Context(), gitRepository(s, "")); err != nil {
		t.Fatal(err)
	}
	again := s.Await("an entry for the moved tag", func(r *v1alpha1.Rollout) bool {
		return len(r.Status.History) == 3 && r.Current().State() == v1alpha1.BakeSucceeded
	})
	if got := again.Current().Version; got.Tag != "1.1.0" || *got.Digest != *digest {
		t.Errorf("the release has become %+v", got)
	}
	if got := again.Status.Targets[0].Digest; got != "sha1:"+moved {
		t.Errorf("the target shows commit %s, want %s", got, moved)
	}
	s.AwaitEvents(s.Rollout(), v1alpha1.TagMovedReason)

	s.Pin("1.0.0")
	s.Await("the commit before", func(r *v1alpha1.Rollout) bool {
		return len(r.Status.History) == 4 && r.Current().State() == v1alpha1.BakeSucceeded
	})
	if diff := cmp.Diff([]string{first, first}, runsFromGit(s)); diff != "" {
		t.Errorf("runs after a pin (-want +got):\n%s", diff)
	}
}

func TestFieldThatOutranksTheTagInGitIsNamed(t *testing.T) {
	s, server := fromGit(t)
	server.Commit(s.ConfigRelease("1.0.0").Files)
	server.Tag("1.0.0")
	repository := gitRepository(s, "")
	s.Change(repository, func() { repository.Spec.Reference = &sourcev1.GitRepositoryRef{Name: "refs/heads/main"} })
	pushImage(s, "1.0.0")
	s.Await("the conflict", func(r *v1alpha1.Rollout) bool {
		return len(r.Status.Targets) == 2 && r.Status.Targets[0].Message == "spec.ref.name outranks spec.ref.tag in Flux: remove it"
	})
	s.Change(repository, func() { repository.Spec.Reference = &sourcev1.GitRepositoryRef{Branch: "main"} })
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
}
