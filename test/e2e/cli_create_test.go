// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// An application comes from nothing to its first release, and to one that is held, approved
// and baked, with the command line alone. The registry has a tag latest, which never runs.
func TestCreateMakesAnApplicationFromNothing(t *testing.T) {
	s := newEnv(t)
	s.Create(s.NamespaceObject())
	for _, tag := range []string{"1.0.0", "latest"} {
		s.Push(s.Release(tag))
	}
	user := s.CommandLine(s.Namespace+":alice", masters)
	run := func(line string) string {
		t.Helper()
		t.Logf("$ kubectl rollouts %s", line)
		return user.MustRun(strings.Fields(line)...)
	}
	create := "create rollout shop --image " + plane.Registry.Host() + "/" + s.Repository + " --insecure --oci-repository shop --bake 3s"
	hasNoFindings(t, user, user.MustRun(strings.Fields(create+" --export")...))
	run(create + " -y")
	run("create gate qa --rollout shop")
	run("wait shop --for=version=1.0.0")
	wasCreatedWith(s, "1.0.0")
	s.AwaitClosed()

	s.Publish(s.Release("1.1.0"))
	s.AwaitCandidate("1.1.0")
	if answer := user.Run("explain", "shop", "--version", "1.1.0", "--check"); answer.Code != 2 {
		t.Errorf("the gate does not hold 1.1.0: %+v", answer)
	}
	run("approve shop --gate qa --version 1.1.0 -y")
	run("wait shop --for=version=1.1.0")
	done := s.Live()
	if diff := cmp.Diff([]string{"2 1.1.0 Succeeded", "1 1.0.0 Succeeded"}, env.History(done)); diff != "" || done.Current().BakeStartTime == nil {
		t.Errorf("history (-want +got), or no bake:\n%s", diff)
	}
	if answer := user.Run("doctor"); strings.Contains(answer.Stdout, "shop/shop") {
		t.Errorf("doctor finds: %+v", answer)
	}

	run(create + " --digest -y")
	source := s.OCIRepository("")
	env.Eventually(t, "1.1.0 by its digest", func() (bool, string) {
		s.Read(source)
		carries := source.Spec.Reference.Tag + "@" + source.Spec.Reference.Digest
		return carries == "1.1.0@"+*done.Current().Version.Digest, carries
	})

	again := user.Run("create", "gate", "qa", "--rollout", "shop")
	if again.Code != 2 || !strings.Contains(again.Stderr, "exists already with another spec") {
		t.Errorf("a gate that exists: %+v", again)
	}
	unknown := user.Run("create", "rollout", "till", "--image", "registry.example/till", "--oci-repository", "till", "--bake", "1h", "-n", "nowhere", "-y")
	if unknown.Code != 1 || !strings.Contains(unknown.Stderr, "nothing was created") || !strings.Contains(unknown.Stderr, `namespaces "nowhere" not found`) {
		t.Errorf("a namespace that does not exist: %+v", unknown)
	}
}

// hasNoFindings checks that lint finds nothing in what was exported.
func hasNoFindings(t *testing.T, user *env.CommandLine, exported string, flags ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "exported.yaml")
	if err := os.WriteFile(file, []byte(exported), 0o600); err != nil {
		t.Fatal(err)
	}
	user.MustRun(append([]string{"lint", file}, flags...)...)
}

// applicationsThatRun are deployed at 1.0.0 before they get a Rollout, each by one of the kinds
// that a Rollout writes. The variable has no value yet.
var applicationsThatRun = map[string]struct {
	create func(s *env.Env)
	target []string
}{
	"OCIRepository": {func(s *env.Env) {
		source := s.OCIRepository(plane.Registry.Host())
		source.Annotations, source.Spec.Reference = nil, &sourcev1.OCIRepositoryRef{Tag: "1.0.0"}
		s.Create(source, s.Kustomization())
	}, []string{"--oci-repository", "shop"}},
	"Kustomization": {func(s *env.Env) {
		base := s.Another("base")
		base.Push(controlplane.Artifact{Repository: base.Repository, Tag: "stable", Files: map[string]string{
			"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  version: \"${SHOP:=1.0.0} in ${REGION}\"\n",
		}})
		source, k := base.OCIRepository(plane.Registry.Host()), s.Kustomization()
		source.Annotations, source.Spec.Reference = nil, &sourcev1.OCIRepositoryRef{Tag: "stable"}
		k.Spec.SourceRef.Name = base.Name
		k.Spec.PostBuild = &kustomizev1.PostBuild{Substitute: map[string]string{"REGION": "eu"}}
		s.Create(source, k)
	}, []string{"--kustomization", "shop", "--variable", "SHOP"}},
	"HelmRelease": {func(s *env.Env) {
		if err := plane.Registry.PushChart(s.T.Context(), s.PackagedChart()); err != nil {
			s.T.Fatal(err)
		}
		helm := s.PackagedHelmRelease()
		helm.Annotations, helm.Spec.Values = nil, &apiextensionsv1.JSON{Raw: []byte(`{"image":{"tag":"1.0.0"},"notes":{"version":"by the user"}}`)}
		s.Create(s.HelmRepository(plane.Registry.Host()), helm)
	}, []string{"--helm-release", "shop", "--value", "image.tag"}},
}

// What runs is the first entry of the history, and the next release goes out.
func TestCreateTakesAnApplicationThatRuns(t *testing.T) {
	for kind, tt := range applicationsThatRun {
		t.Run(kind, func(t *testing.T) {
			s := newEnv(t)
			s.Create(s.NamespaceObject(), s.ImageRepository(plane.Registry.Host()), s.ImagePolicy(">=1.0.0"))
			s.Publish(s.Release("1.0.0"))
			s.AwaitOffer("1.0.0")
			tt.create(s)
			user := s.CommandLine(s.Namespace+":bob", masters)
			create := append([]string{"create", "rollout", "shop", "--image-policy", "shop", "--bake", "1s"}, tt.target...)
			hasNoFindings(t, user, user.MustRun(append(create, "--export")...), "--external=ImagePolicy/"+s.Namespace+"/shop", "--external="+kind+"/"+s.Namespace+"/shop")
			user.MustRun(append(create, "-y")...)
			s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
			s.Publish(s.Release("1.1.0"))
			done := s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
			if diff := cmp.Diff([]string{"2 1.1.0 Succeeded", "1 1.0.0 Succeeded"}, env.History(done)); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
		})
	}
}

// The steps that create prints for a version that Git sets are followed word for word: nothing is
// deployed again, and the next release goes out.
func TestCreatePrintsTheStepsOfAHandover(t *testing.T) {
	p := ruled(t)
	p.Push(p.ConfigRelease("latest")) // Flux would pull this if the tag were missing for a moment
	p.Publish(p.ConfigRelease("1.0.0"))
	p.Create(p.Kustomization())
	p.commit(p.repository("", "1.0.0"))
	p.awaitVersion("1.0.0")
	p.AwaitOffer("1.0.0")
	tags := p.tags()
	user := p.CommandLine(p.Namespace+":carol", masters)
	answer := user.Run("create", "rollout", "shop", "--image-policy", "shop", "--oci-repository", "shop")
	_, steps, _ := strings.Cut(answer.Stderr, "Git sets the version of OCIRepository "+p.Namespace+"/shop today. The Rollout pins 1.0.0")
	_, steps, _ = strings.Cut(steps, "<<'END'\n")
	takeOver, steps, found := strings.Cut(steps, "END\n")
	_, unpin, said := strings.Cut(steps, "let releases go: ")
	if answer.Code != 0 || !found || !said {
		t.Fatalf("the steps: %+v", answer)
	}
	p.Publish(p.ConfigRelease("1.1.0"))
	p.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	p.AwaitCandidate("1.1.0")

	p.own(env.Decode(t, takeOver)[0].(*unstructured.Unstructured))
	p.commit(p.repository("rollout.kuberik.com/rollout: shop", ""))
	p.Await("the target applied", func(r *v1alpha1.Rollout) bool {
		return len(r.Status.Targets) == 2 && r.Status.Targets[0].State == v1alpha1.TargetApplied && r.Status.Targets[1].State == v1alpha1.TargetApplied
	})
	p.commit(p.manifest(ifNotPresent, "  ref:\n    tag: none-yet"))
	p.Stays("at 1.0.0", isHistory("1 1.0.0 Succeeded"))
	if answer := user.Shell(strings.TrimSpace(unpin) + " -y"); answer.Code != 0 {
		t.Fatalf("%s: %+v", unpin, answer)
	}
	p.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	p.awaitVersion("1.1.0")
	if diff := cmp.Diff([]string{"1.0.0", "1.1.0"}, tags()); diff != "" {
		t.Errorf("the tags that the OCIRepository had (-want +got):\n%s", diff)
	}
}
