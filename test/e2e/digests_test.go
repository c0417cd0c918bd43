// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// unsigned is a public key for which nothing was signed.
const unsigned = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEhyQCx0E9wQWSFI9ULGwy3BuRklnt
IqozONbbdbqz11hlRJy9c7SG+hdcFl9jE9uE/dwtuwU2MqU9T/cN0YkWww==
-----END PUBLIC KEY-----
`

// reflectsAlways makes an ImagePolicy look at the digest of its release every second.
func reflectsAlways(p *imagev1.ImagePolicy) {
	p.Spec.DigestReflectionPolicy, p.Spec.Interval = imagev1.ReflectAlways, &metav1.Duration{Duration: time.Second}
}

// byDigest returns an application of which 1.0.0 was promoted by its digest, and the digest.
func byDigest(t *testing.T) (*env.Env, string) {
	t.Helper()
	return pushedBy(t, func(s *env.Env) string { return s.Push(s.ConfigRelease("1.0.0")) })
}

// pushedBy is byDigest, and the function pushes 1.0.0.
func pushedBy(t *testing.T, push func(*env.Env) string) (*env.Env, string) {
	t.Helper()
	s := newEnv(t)
	for _, object := range s.Flux(plane.Registry.Host()) {
		switch o := object.(type) {
		case *imagev1.ImagePolicy:
			reflectsAlways(o)
		case *sourcev1.OCIRepository:
			o.Annotations[v1alpha1.DigestRefAnnotation] = s.Name
		}
		s.Create(object)
	}
	s.Create(s.Rollout())
	digest := push(s)
	s.Scan()
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	return s, digest
}

// runs returns the digests that the OCIRepository has pulled and the Kustomization has applied.
func runs(s *env.Env) []string {
	source, kustomization := s.OCIRepository(""), s.Kustomization()
	s.Read(source)
	s.Read(kustomization)
	return []string{source.Status.Artifact.Revision, kustomization.Status.LastAppliedRevision}
}

func TestReleaseRunsByItsDigest(t *testing.T) {
	s, digest := byDigest(t)
	if diff := cmp.Diff([]string{digest, digest}, runs(s)); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	closed := fixture.MakeGate("qa", s.Name).Closed().Obj()
	closed.Namespace = s.Namespace
	s.Create(closed)
	other := pushAgain(s, "1.0.0")
	s.Scan()
	pull(s)
	s.Await("the new content as a candidate", func(r *v1alpha1.Rollout) bool {
		c := r.Status.ReleaseCandidates
		return len(c) == 1 && c[0].Tag == "1.0.0" && *c[0].Digest == other && c[0].Holds[0].Reason == v1alpha1.SomeGatesBlockingReason
	})
	s.Stays("the old content", func(r *v1alpha1.Rollout) bool { return len(r.Status.History) == 1 })
	if diff := cmp.Diff([]string{digest, digest}, runs(s)); diff != "" {
		t.Errorf("runs behind a closed gate (-want +got):\n%s", diff)
	}

	s.Change(closed, func() { closed.Spec.Passing, closed.Spec.AllowedVersions = new(true), &[]string{"1.0.0@" + other} })
	done := s.Await("the end of its promotion", func(r *v1alpha1.Rollout) bool {
		return len(r.Status.History) == 2 && r.Current().State() == v1alpha1.BakeSucceeded
	})
	if diff := cmp.Diff([]string{"1.0.0@" + other + " Succeeded", "1.0.0@" + digest + " Succeeded"}, contents(done)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{other, other}, runs(s)); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if moved := env.WithReason(s.Events(done), v1alpha1.TagMovedReason); len(moved) > 0 {
		t.Errorf("reported as a tag that moved: %q", moved)
	}

	s.Pin("1.0.0@" + digest)
	back := s.Await("the content before", func(r *v1alpha1.Rollout) bool {
		return len(r.Status.History) == 3 && r.Current().State() == v1alpha1.BakeSucceeded
	})
	if diff := cmp.Diff([]string{digest, digest}, runs(s)); diff != "" || back.Current().Version.Tag != "1.0.0" {
		t.Errorf("runs after a pin (-want +got):\n%s", diff)
	}
}

// Flux chooses a platform when it pulls. The release is all of them.
func TestReleaseOfTwoPlatformsRunsByTheDigestOfItsIndex(t *testing.T) {
	s, digest := pushedBy(t, pushIndex)
	source, rollout := s.OCIRepository(""), s.Rollout()
	s.Read(source)
	s.Read(rollout)
	if source.Spec.Reference.Tag != "1.0.0" || source.Spec.Reference.Digest != digest {
		t.Errorf("pulls %+v, want %s", source.Spec.Reference, digest)
	}
	if diff := cmp.Diff([]string{digest, digest}, runs(s)); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1.0.0@" + digest + " Succeeded"}, contents(rollout)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

// pushIndex pushes 1.0.0 for two platforms, and returns the digest of its index.
func pushIndex(s *env.Env) string {
	s.T.Helper()
	index, repository := mutate.IndexMediaType(empty.Index, types.OCIImageIndex), s.Plane.Registry.Host()+"/"+s.Repository
	for _, platform := range []string{"amd64", "arm64"} {
		one := s.ConfigRelease("1.0.0")
		one.Tag = platform // which is no version
		s.Push(one)
		image, err := remote.Image(reference(s, repository+":"+platform), remote.WithContext(s.T.Context()))
		if err != nil {
			s.T.Fatal(err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: ggcr.Descriptor{Platform: &ggcr.Platform{OS: "linux", Architecture: platform}}})
	}
	digest, err := index.Digest()
	if err != nil {
		s.T.Fatal(err)
	}
	if err := remote.WriteIndex(reference(s, repository+":1.0.0"), index, remote.WithContext(s.T.Context())); err != nil {
		s.T.Fatal(err)
	}
	return digest.String()
}

// reference returns the reference to a tag of the registry, which has no TLS.
func reference(s *env.Env, tag string) name.Tag {
	s.T.Helper()
	parsed, err := name.NewTag(tag, name.Insecure)
	if err != nil {
		s.T.Fatal(err)
	}
	return parsed
}

func TestDigestsAreSwitchedOnWithoutAnUpgrade(t *testing.T) {
	s := charted(t, nil)
	policy := s.ImagePolicy("")
	s.Change(policy, func() { reflectsAlways(policy) })
	release, source := s.HelmRelease(), s.ChartRepository("")
	s.Read(release)
	versions := len(release.Status.History)

	s.Change(source, func() { source.Annotations[v1alpha1.DigestRefAnnotation] = s.Name })
	s.AwaitEvents(s.Rollout(), v1alpha1.TargetPinnedReason)
	env.Eventually(t, "the chart by its digest", func() (bool, string) {
		s.Read(release)
		tried := release.Status.LastAttemptedRevisionDigest
		return strings.HasPrefix(tried, "sha256:") && release.Status.ObservedGeneration == release.Generation, tried
	})
	s.Stays("one promotion", func(r *v1alpha1.Rollout) bool {
		return len(r.Status.History) == 1 && r.Current().State() == v1alpha1.BakeSucceeded
	})
	s.Read(release)
	if got := len(release.Status.History); got != versions {
		t.Errorf("Helm has %d versions, and had %d", got, versions)
	}

	publishChart(s, s.Chart("6.1.0"))
	s.AwaitState("6.1.0", v1alpha1.BakeSucceeded)
	s.Read(source)
	if source.Spec.Reference.Tag != "6.1.0" || source.Status.Artifact.Revision != source.Spec.Reference.Digest {
		t.Errorf("pulls %+v as %s", source.Spec.Reference, source.Status.Artifact.Revision)
	}

	s.Change(source, func() { delete(source.Annotations, v1alpha1.DigestRefAnnotation) })
	s.AwaitEvents(s.Rollout(), v1alpha1.TargetUnpinnedReason)
	publishChart(s, s.Chart("6.2.0"))
	s.AwaitState("6.2.0", v1alpha1.BakeSucceeded)
	s.Read(source)
	if source.Spec.Reference.Digest != "" {
		t.Errorf("pulls %+v", source.Spec.Reference)
	}
}

func TestUnsignedDigestFails(t *testing.T) {
	s, _ := byDigest(t)
	s.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "keys"}, StringData: map[string]string{"ann.pub": unsigned}})
	source := s.OCIRepository("")
	s.Change(source, func() {
		source.Spec.Verify = &sourcev1.OCIRepositoryVerification{Provider: "cosign", SecretRef: &meta.LocalObjectReference{Name: "keys"}}
	})
	s.Publish(s.ConfigRelease("1.1.0"))
	awaitFailedTarget(s, "1.1.0", "signature")
	s.SetDeployTimeout(time.Second)
	failed := s.AwaitState("1.1.0", v1alpha1.BakeFailed)
	if why := *failed.Current().BakeStatusMessage; !strings.Contains(why, "signature") {
		t.Errorf("it failed because %q", why)
	}
}

// The digest of an image stands beside its tag in the manifests of a Kustomization.
func TestVariableGetsTheDigest(t *testing.T) {
	s := substituteDigest(t)
	digest := s.Push(s.ConfigRelease("1.1.0"))
	s.Scan()
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	k := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	s.Read(k)
	want := map[string]string{"SHOP": "1.1.0", "DIGEST": digest, "REGION": "eu"}
	if diff := cmp.Diff(want, k.Spec.PostBuild.Substitute); diff != "" {
		t.Errorf("substitutes (-want +got):\n%s", diff)
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "settings"}}
	s.Read(settings)
	if got, want := settings.Data["image"], "registry.example/shop:1.1.0@"+digest; got != want {
		t.Errorf("applied %s, want %s", got, want)
	}
}

// substituteDigest returns an application whose Kustomization gets tag and digest of its image.
func substituteDigest(t *testing.T) *env.Env {
	t.Helper()
	s := newEnv(t)
	host, policy := plane.Registry.Host(), s.ImagePolicy(">=1.0.0")
	reflectsAlways(policy)
	s.Create(s.NamespaceObject(), s.ImageRepository(host), policy, s.Rollout())
	s.Publish(s.ConfigRelease("1.0.0"))
	base := s.Another("base")
	base.Push(controlplane.Artifact{Repository: base.Repository, Tag: "stable", Files: map[string]string{"settings.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  image: "registry.example/shop:${SHOP}@${DIGEST}"
  region: "${REGION}"
`}})
	source, k := base.OCIRepository(host), s.Kustomization()
	source.Annotations, source.Spec.Reference = nil, &sourcev1.OCIRepositoryRef{Tag: "stable"}
	k.Spec.SourceRef.Name = base.Name
	k.Spec.PostBuild = &kustomizev1.PostBuild{Substitute: map[string]string{"REGION": "eu"}}
	k.Annotations = map[string]string{substituteFrom("SHOP"): s.Name, v1alpha1.DigestSubstituteAnnotationPrefix + "DIGEST": s.Name}
	s.Create(source, k)
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	return s
}
