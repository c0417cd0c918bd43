// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// packaged returns an application with a chart from a HelmRepository, after 1.0.0 was
// found.
func packaged(t *testing.T, release func(*helmv2.HelmRelease), options ...func(*v1alpha1.RolloutSpec)) *env.Env {
	t.Helper()
	s := newEnv(t)
	host := plane.Registry.Host()
	// All releases have the same chart.
	if err := plane.Registry.PushChart(t.Context(), s.GivesUpSoon().PackagedChart()); err != nil {
		t.Fatal(err)
	}
	helm := s.PackagedHelmRelease()
	if release != nil {
		release(helm)
	}
	s.Create(s.NamespaceObject(), s.ImageRepository(host), s.ImagePolicy(">=1.0.0"), s.HelmRepository(host), s.Rollout(options...))
	s.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "values"}, Data: map[string]string{
		"values.yaml": "image: {tag: 0.0.1}\nnotes: {version: by a reference}\n", "tag": "0.0.2",
	}}, helm)
	s.Publish(s.Release("1.0.0"))
	return s
}

func valuesOf(s *env.Env) string {
	s.T.Helper()
	helm := s.PackagedHelmRelease()
	s.Read(helm)
	return string(helm.Spec.Values.Raw)
}

// The values of a reference without a target path come before spec.values.
func TestReleaseIsPromotedThroughAValue(t *testing.T) {
	s := packaged(t, func(h *helmv2.HelmRelease) {
		h.Spec.ValuesFrom = []helmv2.ValuesReference{{Kind: "ConfigMap", Name: "values"}}
	})
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	s.Publish(s.Release("1.1.0"))
	done := s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	s.Read(deployment)
	if got, want := imageOf(s), "registry.example/shop:1.1.0"; got != want {
		t.Errorf("the Deployment runs %s, want %s", got, want)
	}
	if got, want := deployment.Status.ReadyReplicas, *deployment.Spec.Replicas; got != want {
		t.Errorf("the promotion ended with %d ready pods, want %d", got, want)
	}
	if diff := cmp.Diff([]string{"HelmRelease Applied"}, targetsOf(done)); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	if got, want := valuesOf(s), `{"image":{"tag":"1.1.0"},"notes":{"version":"by the user"}}`; got != want {
		t.Errorf("spec.values is %s, want %s", got, want)
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	s.Read(config)
	if got, want := config.Data["version"], "by the user"; got != want {
		t.Errorf("the chart got %q, want %q", got, want)
	}
}

// Pods of 4.5.0 are never ready. Helm rolls back to 1.0.0 by itself, and reports no problem
// then. The release has failed, and another one can follow. The value is 1.0.0 from the
// beginning: Helm may install the chart before or after the Rollout has written it.
func TestReleaseFailsWhenHelmCannotInstallTheValue(t *testing.T) {
	if err := plane.BreakVersion(t.Context(), "4.5.0"); err != nil {
		t.Fatal(err)
	}
	s := packaged(t, func(h *helmv2.HelmRelease) {
		h.Spec.Values = &apiextensionsv1.JSON{Raw: []byte(`{"image":{"tag":"1.0.0"},"notes":{"version":"by the user"}}`)}
		h.Spec.Upgrade = &helmv2.Upgrade{Remediation: &helmv2.UpgradeRemediation{RemediateLastFailure: new(true)}}
	})
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	s.Publish(s.Release("4.5.0"))
	failsSaying(s, "4.5.0", "Helm rollback to previous release "+s.Namespace+"/shop.v1 with chart shop-chart@7.0.0")
	s.Pin("1.0.0")
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	s.Publish(s.Release("4.5.1"))
	s.Pin("4.5.1")
	done := s.AwaitState("4.5.1", v1alpha1.BakeSucceeded)
	want := []string{"4 4.5.1 Succeeded", "3 1.0.0 Succeeded", "2 4.5.0 Failed", "1 1.0.0 Succeeded"}
	if diff := cmp.Diff(want, env.History(done)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

// A value with a target path takes precedence over spec.values. What the Rollout writes
// there would not reach the chart.
func TestValueThatAReferenceReplacesIsAConflict(t *testing.T) {
	values := `{"image":{"tag":"0.9.0"},"notes":{"version":"by the user"}}`
	s := packaged(t, func(h *helmv2.HelmRelease) {
		h.Spec.ValuesFrom = []helmv2.ValuesReference{{Kind: "ConfigMap", Name: "values", ValuesKey: "tag", TargetPath: "image.tag"}}
		h.Spec.Values = &apiextensionsv1.JSON{Raw: []byte(values)}
	})
	const why = "TargetsApplied=False TargetConflict: HelmRelease shop: spec.valuesFrom with targetPath image.tag outranks spec.values.image.tag in Flux: remove it"
	s.Await("the conflict", func(r *v1alpha1.Rollout) bool {
		return env.Condition(r, v1alpha1.TargetsAppliedCondition) == why
	})
	helm := s.PackagedHelmRelease()
	env.Eventually(t, "Helm done", func() (bool, string) {
		s.Read(helm)
		return len(helm.Status.History) > 0, env.ConditionOf(helm.Status.Conditions, "Ready")
	})
	if got, want := imageOf(s), "registry.example/shop:0.0.2"; got != want {
		t.Errorf("the Deployment runs %s, want %s", got, want)
	}
	if got := valuesOf(s); got != values {
		t.Errorf("spec.values is %s, want %s", got, values)
	}
	s.Change(helm, func() { helm.Spec.ValuesFrom = nil })
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	if got, want := imageOf(s), "registry.example/shop:1.0.0"; got != want {
		t.Errorf("the Deployment runs %s, want %s", got, want)
	}
}
