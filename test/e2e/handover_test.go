// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxkustomize "github.com/fluxcd/pkg/apis/kustomize"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// The tests follow the guide for the change from image automation to Rollouts. The
// parent stands for Git, and the test for the user who commits.

func TestTagGoesFromGitToTheRolloutAndBack(t *testing.T) {
	p := ruled(t)
	p.Push(p.ConfigRelease("1.0.0"))
	p.Push(p.ConfigRelease("latest")) // Flux would pull this if the tag were missing for a moment
	p.Create(p.Kustomization())
	p.commit(p.repository("", "1.0.0"))
	p.awaitVersion("1.0.0")
	tags := p.tags()

	rollout := p.Rollout()
	pin := "1.0.0"
	rollout.Spec.WantedVersion = &pin
	p.Create(rollout)
	p.Publish(p.ConfigRelease("1.1.0"))
	p.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	p.AwaitCandidate("1.1.0")

	p.own(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": sourcev1.GroupVersion.String(), "kind": sourcev1.OCIRepositoryKind,
		"metadata": map[string]any{"namespace": p.Namespace, "name": "shop"},
		"spec":     map[string]any{"ref": map[string]any{"tag": "1.0.0"}},
	}})
	p.commit(p.repository("rollout.kuberik.com/rollout: shop", ""))
	p.Await("the target applied", func(r *v1alpha1.Rollout) bool {
		return len(r.Status.Targets) == 2 && env.Condition(r, v1alpha1.StalledCondition) == "" &&
			r.Status.Targets[1].State == v1alpha1.TargetApplied
	})
	p.Stays("at 1.0.0", isHistory("1 1.0.0 Succeeded"))

	// For a new cluster, Git has a tag that does not exist. Here the object exists.
	p.commit(p.manifest(ifNotPresent, "  ref:\n    tag: none-yet"))
	p.Stays("at 1.0.0, whatever tag Git has", isHistory("1 1.0.0 Succeeded"))

	p.Pin("")
	p.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	p.awaitVersion("1.1.0")

	p.commit(p.repository("", "1.1.0"))
	p.awaitUnannotated()
	p.Delete(p.Rollout())
	p.Push(p.ConfigRelease("1.2.1"))
	p.commit(p.repository("", "1.2.1"))
	p.awaitVersion("1.2.1")
	if diff := cmp.Diff([]string{"1.0.0", "1.1.0", "1.2.1"}, tags()); diff != "" {
		t.Errorf("the tags that the OCIRepository had (-want +got):\n%s", diff)
	}
}

// repository returns the manifest of the OCIRepository shop in Git, with an annotation
// and a tag, or without one of them.
func (p parent) repository(annotation, tag string) string {
	manifest := p.manifest("", "  ref:\n    tag: "+tag)
	if tag == "" {
		manifest = p.manifest("", "")
	}
	if annotation == "" {
		manifest = strings.Replace(manifest, "  annotations:\n    rollout.kuberik.com/rollout: shop\n", "", 1)
	}
	return manifest
}

// own takes the ownership of fields for the Rollout, as kubectl apply does with
// --server-side and --field-manager. It fails if Git has other values for them.
func (p parent) own(fields *unstructured.Unstructured) {
	p.T.Helper()
	err := p.Plane.Client().Apply(p.T.Context(), client.ApplyConfigurationFromUnstructured(fields), client.FieldOwner("rollout-controller"))
	if err != nil {
		p.T.Fatal(err)
	}
}

// awaitVersion waits until the ConfigMap shop contains a version.
func (p parent) awaitVersion(version string) {
	p.T.Helper()
	applied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "shop"}}
	env.Eventually(p.T, "version "+version, func() (bool, string) {
		err := p.Plane.Client().Get(p.T.Context(), client.ObjectKeyFromObject(applied), applied)
		return err == nil && applied.Data["version"] == version, fmt.Sprint(applied.Data, err)
	})
}

func (p parent) awaitUnannotated() {
	p.T.Helper()
	env.Eventually(p.T, "no annotation", func() (bool, string) {
		source := p.OCIRepository("")
		p.Read(source)
		return source.Annotations[v1alpha1.RolloutAnnotation] == "", fmt.Sprint(source.Annotations)
	})
}

// worker returns the manifest of the Kustomization shop in Git, with additions to its
// annotations and to its spec. The Kustomization applies the settings.
func (p parent) worker(annotations, spec string) string {
	return fmt.Sprintf(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: shop
%s
spec:
  interval: 1h
  retryInterval: 5s
  prune: true
  targetNamespace: %s
  sourceRef:
    kind: OCIRepository
    name: base
%s
`, annotations, p.Namespace, spec)
}

func TestVariableTakesThePlaceOfAVersionInGit(t *testing.T) {
	p := ruled(t)
	publish := p.settings("1.0.0")
	p.commit(p.worker("", ""))
	p.awaitVersion("1.0.0")

	publish("${SHOP:=0.0.0}") // Flux substitutes nothing while there is no variable
	p.awaitVersion("${SHOP:=0.0.0}")
	p.own(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": map[string]any{"namespace": p.Namespace, "name": "shop"},
		"spec":     map[string]any{"postBuild": map[string]any{"substitute": map[string]any{"SHOP": "1.0.0"}}},
	}})
	p.awaitVersion("1.0.0")

	rollout := p.Rollout()
	pin := "1.0.0"
	rollout.Spec.WantedVersion = &pin
	p.Create(rollout)
	p.Publish(p.ConfigRelease("1.1.0"))
	p.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	p.commit(p.worker(substitutesShop, ""))
	p.Await("the target applied", func(r *v1alpha1.Rollout) bool {
		return len(r.Status.Targets) == 1 && r.Status.Targets[0].State == v1alpha1.TargetApplied
	})
	p.Stays("at 1.0.0", isHistory("1 1.0.0 Succeeded"))
	p.AwaitCandidate("1.1.0")
	p.Pin("")
	p.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	p.awaitVersion("1.1.0")
}

func TestVariableKeepsWhatItIsGivenIfTheParentIgnoresIt(t *testing.T) {
	p := ruled(t)
	fleet := p.fleet.Kustomization()
	p.Change(fleet, func() {
		fleet.Spec.Ignore = []kustomizev1.IgnoreRule{{
			Paths:  []string{"/spec/postBuild/substitute/SHOP"},
			Target: &fluxkustomize.Selector{Kind: kustomizev1.KustomizationKind, Name: "shop"},
		}}
	})
	p.settings("${SHOP}")
	p.commit(p.worker(substitutesShop, "  postBuild:\n    substitute:\n      SHOP: 1.0.0"))
	p.awaitVersion("1.0.0")
	p.Publish(p.ConfigRelease("1.1.0"))
	p.Create(p.Rollout())
	p.AwaitState("1.1.0", v1alpha1.BakeSucceeded)

	p.commit(p.worker(substitutesShop, "  postBuild:\n    substitute:\n      SHOP: 1.0.1\n      REGION: eu"))
	env.Eventually(t, "what else Git says", func() (bool, string) {
		k := p.Kustomization()
		p.Read(k)
		return k.Spec.PostBuild.Substitute["REGION"] == "eu", fmt.Sprint(k.Spec.PostBuild.Substitute)
	})
	p.Stays("in peace", func(r *v1alpha1.Rollout) bool { return env.Condition(r, v1alpha1.StalledCondition) == "" })
	p.awaitVersion("1.1.0")
}

const substitutesShop = "  annotations:\n    rollout.kuberik.com/substitute.SHOP.from: shop"

// settings creates the source of the Kustomization shop: a ConfigMap with a version, or
// with a variable. The returned function publishes another one.
func (p parent) settings(version string) (publish func(version string)) {
	p.T.Helper()
	base := p.Another("base")
	publish = func(version string) {
		base.Push(controlplane.Artifact{Repository: base.Repository, Tag: "main", Files: map[string]string{
			"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: shop\ndata:\n  version: \"" + version + "\"\n",
		}})
	}
	publish(version)
	source := base.OCIRepository(plane.Registry.Host())
	source.Annotations, source.Spec.Reference = nil, &sourcev1.OCIRepositoryRef{Tag: "main"}
	source.Spec.Interval = metav1.Duration{Duration: 5 * time.Second}
	p.Create(source)
	return publish
}
