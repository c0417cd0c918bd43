// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// TestReportHasNoValuesThatNoRolloutWrites: values may contain passwords.
func TestReportHasNoValuesThatNoRolloutWrites(t *testing.T) {
	g := NewWithT(t)
	release := fixture.MakeHelmRelease("shop").DrivenBy("shop", "image.tag").Values(`{"image": {"tag": "1.0.0"}, "password": "s3cret"}`).Obj()
	release.Annotations[corev1.LastAppliedConfigAnnotation] = `{"spec": {"values": {"password": "s3cret"}}}`
	got := reported(targets.Target{HelmRelease: release}).(*helmv2.HelmRelease)
	g.Expect(got.Spec.Values.Raw).To(MatchJSON(`{"image": {"tag": "1.0.0"}}`))
	g.Expect(got.Annotations).To(HaveLen(1))
	g.Expect(string(release.Spec.Values.Raw)).To(ContainSubstring("s3cret"), "the object itself stays as it was read")

	g.Expect(reported(targets.Target{HelmRelease: fixture.MakeHelmRelease("web").Values(`{"password": "s3cret"}`).Obj()}).(*helmv2.HelmRelease).Spec.Values).To(BeNil())
}
