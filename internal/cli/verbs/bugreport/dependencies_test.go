// SPDX-License-Identifier: Apache-2.0

package bugreport

import (
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// TestReportHasNothingThatNoRolloutWrites: values, variables and patches may contain
// passwords.
func TestReportHasNothingThatNoRolloutWrites(t *testing.T) {
	g := NewWithT(t)
	release := fixture.MakeHelmRelease("shop").DrivenBy("shop", "image.tag").Values(`{"image": {"tag": "1.0.0"}, "password": "s3cret"}`).Obj()
	got := reported(targets.Target{HelmRelease: release}).(*helmv2.HelmRelease)
	g.Expect(got.Spec.Values.Raw).To(MatchJSON(`{"image": {"tag": "1.0.0"}}`))
	g.Expect(string(release.Spec.Values.Raw)).To(ContainSubstring("s3cret"), "the object itself stays as it was read")

	g.Expect(reported(targets.Target{HelmRelease: fixture.MakeHelmRelease("web").Values(`{"password": "s3cret"}`).Obj()}).(*helmv2.HelmRelease).Spec.Values).To(BeNil())

	k := fixture.MakeKustomization("shop").DrivenBy("shop", "TAG").Obj()
	k.Spec.PostBuild = &kustomizev1.PostBuild{
		Substitute:     map[string]string{"TAG": "1.0.0", "PASSWORD": "s3cret"},
		SubstituteFrom: []kustomizev1.SubstituteReference{{Kind: "Secret", Name: "s3cret"}},
	}
	k.Spec.Patches = []kustomize.Patch{{Patch: "password: s3cret"}}
	applied := reported(targets.Target{Kustomization: k}).(*kustomizev1.Kustomization)
	g.Expect(applied.Spec.PostBuild.Substitute).To(Equal(map[string]string{"TAG": "1.0.0"}))
	g.Expect(fmt.Sprint(applied)).NotTo(ContainSubstring("s3cret"))
	g.Expect(k.Spec.Patches).NotTo(BeEmpty(), "the object itself stays as it was read")
}

// TestReportHasNoPasswordsOfAnyObject: whoever applies objects with kubectl has a copy of
// all that was removed in an annotation.
func TestReportHasNoPasswordsOfAnyObject(t *testing.T) {
	object := map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{corev1.LastAppliedConfigAnnotation: `{"spec": {"password": "s3cret"}}`, "note": "kept"}},
		"spec": map[string]any{
			"http":       map[string]any{"headers": []any{map[string]any{"name": "X-Key", "value": "s3cret"}}},
			"prometheus": map[string]any{"headers": []any{map[string]any{"name": "X-Scope-OrgID", "value": "s3cret"}}},
		},
	}
	removePasswords(object)
	text := fmt.Sprint(object)
	if strings.Contains(text, "s3cret") || !strings.Contains(text, "kept") || !strings.Contains(text, "X-Key") {
		t.Error(text)
	}
}
