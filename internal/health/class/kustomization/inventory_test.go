// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestInventoryIsGroupedByKindAndNamespace(t *testing.T) {
	g := NewWithT(t)
	got, err := groups([]entry{
		{"shop_web__Service", "v1"},
		{"shop_web_apps_Deployment", "v1"},
		{"shop_key__Secret", "v1"},
		{"shop_api_apps_Deployment", "v1"},
		{"apps_api_apps_Deployment", "v1"},
		{"shop_web_apps_Deployment", "v1"},
	})
	g.Expect(err).NotTo(HaveOccurred())
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	g.Expect(got).To(Equal([]group{
		{schema.GroupVersionKind{Version: "v1", Kind: "Service"}, "shop", []string{"web"}},
		{deployment, "apps", []string{"api"}},
		{deployment, "shop", []string{"api", "web"}},
	}))
}

func TestKindsWithoutHealthAreNotRead(t *testing.T) {
	for kind, want := range map[schema.GroupKind]bool{
		{Kind: "Secret"}:    false,
		{Kind: "ConfigMap"}: false,
		{Group: "rbac.authorization.k8s.io", Kind: "Role"}:                false,
		{Group: "kuberik.com", Kind: "Rollout"}:                           false,
		{Group: "kuberik.com", Kind: "HealthCheck"}:                       false,
		{Group: "example.com", Kind: "Secret"}:                            true,
		{Group: "apps", Kind: "Deployment"}:                               true,
		{Kind: "Pod"}:                                                     true,
		{Group: "policy", Kind: "PodDisruptionBudget"}:                    true,
		{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:           true,
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true,
	} {
		t.Run(kind.String(), func(t *testing.T) {
			NewWithT(t).Expect(hasHealth(kind)).To(Equal(want))
		})
	}
}
