// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// settings is the manifest that the shared Kustomization applies: a ConfigMap with the
// variables that the Rollouts and the user substitute.
const settings = `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  shop: "${SHOP}"
  shopImage: "registry.example/shop:${SHOP_IMAGE}"
  till: "${TILL}"
  region: "${REGION}"
`

// substituted is a Kustomization to which two Rollouts write: shop, which promotes 1.0.0,
// and till, which promotes 2.0.0.
type substituted struct {
	shop, till    *env.Env
	kustomization *kustomizev1.Kustomization
}

func substitute(t *testing.T) substituted {
	t.Helper()
	s := newEnv(t)
	both := substituted{shop: s, till: s.Another("till"), kustomization: s.Kustomization()}
	host := plane.Registry.Host()
	s.Create(s.NamespaceObject())
	for app, version := range map[*env.Env]string{s: "1.0.0", both.till: "2.0.0"} {
		app.Create(app.ImageRepository(host), app.ImagePolicy(">=1.0.0"), app.Rollout())
		app.Publish(app.ConfigRelease(version))
	}
	base := s.Another("base")
	base.Push(controlplane.Artifact{
		Repository: base.Repository, Tag: "stable", Files: map[string]string{"settings.yaml": settings},
	})
	source := base.OCIRepository(host)
	source.Annotations, source.Spec.Reference = nil, &sourcev1.OCIRepositoryRef{Tag: "stable"}

	k := both.kustomization
	k.Spec.SourceRef.Name = base.Name
	k.Spec.PostBuild = &kustomizev1.PostBuild{Substitute: map[string]string{"REGION": "eu"}}
	k.Annotations = map[string]string{
		substituteFrom("SHOP"):       "shop",
		substituteFrom("SHOP_IMAGE"): "shop",
		substituteFrom("TILL"):       "till",
	}
	s.Create(source, k)
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	both.till.AwaitState("2.0.0", v1alpha1.BakeSucceeded)
	return both
}

func substituteFrom(variable string) string {
	return v1alpha1.SubstituteAnnotationPrefix + variable + v1alpha1.SubstituteAnnotationSuffix
}

func TestRolloutsShareAKustomizationAndOwnTheirKeysAlone(t *testing.T) {
	s := substitute(t)
	s.shop.Publish(s.shop.ConfigRelease("1.1.0"))
	s.shop.AwaitState("1.1.0", v1alpha1.BakeSucceeded)

	applied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.shop.Namespace, Name: "settings"}}
	s.shop.Read(applied)
	want := map[string]string{"shop": "1.1.0", "shopImage": "registry.example/shop:1.1.0", "till": "2.0.0", "region": "eu"}
	if diff := cmp.Diff(want, applied.Data); diff != "" {
		t.Errorf("what was applied (-want +got):\n%s", diff)
	}
	s.shop.Read(s.kustomization)
	wantOwned := map[string]any{
		"f:metadata": map[string]any{"f:annotations": map[string]any{
			"f:" + v1alpha1.ReconcileRequestAnnotation: map[string]any{},
			"f:promotion.rollout.kuberik.com/shop":     map[string]any{}, "f:promotion.rollout.kuberik.com/till": map[string]any{},
		}},
		"f:spec": map[string]any{"f:postBuild": map[string]any{"f:substitute": map[string]any{
			"f:SHOP": map[string]any{}, "f:SHOP_IMAGE": map[string]any{}, "f:TILL": map[string]any{},
		}}},
	}
	if diff := cmp.Diff([]any{wantOwned}, owned(t, s.kustomization)); diff != "" {
		t.Errorf("what the controller owns (-want +got):\n%s", diff)
	}
}

// owned returns the fields of an object that the controller owns.
func owned(t *testing.T, object client.Object) []any {
	t.Helper()
	var all []any
	for _, entry := range object.GetManagedFields() {
		if entry.Manager != "rollout-controller" {
			continue
		}
		var fields any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			t.Fatal(err)
		}
		all = append(all, fields)
	}
	return all
}

func TestTargetChangedByHandIsPutBack(t *testing.T) {
	s := substitute(t)
	s.shop.Change(s.kustomization, func() {
		s.kustomization.Spec.PostBuild.Substitute["SHOP"] = "9.9.9"
		s.kustomization.Spec.PostBuild.Substitute["REGION"] = "us"
	})
	s.awaitSubstitutes(map[string]string{"SHOP": "1.0.0", "SHOP_IMAGE": "1.0.0", "TILL": "2.0.0", "REGION": "us"})
	want := []string{"Normal TargetRestored: Kustomization " + s.shop.Namespace + "/shop had drifted and was set to 1.0.0 again"}
	env.Eventually(t, "the event", func() (bool, string) {
		diff := cmp.Diff(want, env.WithReason(s.shop.Events(s.shop.Rollout()), v1alpha1.TargetRestoredReason))
		return diff == "", diff
	})
}

func TestTargetAnnotatedLaterIsBroughtUpToDate(t *testing.T) {
	s := substitute(t)
	late := s.shop.OCIRepository(plane.Registry.Host())
	late.Annotations = nil
	s.shop.Create(late)
	s.shop.Change(late, func() { late.Annotations = map[string]string{v1alpha1.RolloutAnnotation: "shop"} })
	s.shop.Change(s.kustomization, func() { s.kustomization.Annotations[substituteFrom("MORE")] = "till" })

	s.awaitSubstitutes(map[string]string{
		"SHOP": "1.0.0", "SHOP_IMAGE": "1.0.0", "TILL": "2.0.0", "REGION": "eu", "MORE": "2.0.0",
	})
	s.shop.Await("both targets applied", func(r *v1alpha1.Rollout) bool {
		applied := apimeta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.TargetsAppliedCondition)
		return applied && len(r.Status.Targets) == 2
	})
	if diff := cmp.Diff([]string{"1 1.0.0 Succeeded"}, env.History(s.shop.Live())); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	s.shop.Read(late)
	if diff := cmp.Diff(&sourcev1.OCIRepositoryRef{Tag: "1.0.0"}, late.Spec.Reference); diff != "" {
		t.Errorf("reference of the OCIRepository (-want +got):\n%s", diff)
	}
}

func TestDeletedRolloutLeavesItsTargetsAsTheyAre(t *testing.T) {
	s := substitute(t)
	s.shop.Read(s.kustomization)
	before := s.kustomization.DeepCopy()
	s.shop.Delete(s.shop.Rollout())
	s.till.Publish(s.till.ConfigRelease("2.1.0")) // the Kustomization is still written
	s.till.AwaitState("2.1.0", v1alpha1.BakeSucceeded)
	s.awaitSubstitutes(map[string]string{"SHOP": "1.0.0", "SHOP_IMAGE": "1.0.0", "TILL": "2.1.0", "REGION": "eu"})
	before.Annotations["promotion.rollout.kuberik.com/till"] = "2"
	delete(before.Annotations, v1alpha1.ReconcileRequestAnnotation) // each write sets it
	delete(s.kustomization.Annotations, v1alpha1.ReconcileRequestAnnotation)
	if diff := cmp.Diff(before.Annotations, s.kustomization.Annotations); diff != "" {
		t.Errorf("annotations (-before +after):\n%s", diff)
	}
}

func (s substituted) awaitSubstitutes(want map[string]string) {
	s.shop.T.Helper()
	env.Eventually(s.shop.T, "the substitutes", func() (bool, string) {
		s.shop.Read(s.kustomization)
		diff := cmp.Diff(want, s.kustomization.Spec.PostBuild.Substitute)
		return diff == "", "(-want +got):\n" + diff
	})
}
