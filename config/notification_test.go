// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

// kindsOf names the field in which each of Flux's CRDs lists the allowed kinds.
var kindsOf = map[string]string{
	"alerts.notification.toolkit.fluxcd.io":    "eventSources",
	"receivers.notification.toolkit.fluxcd.io": "resources",
}

// TestAlertsAndReceiversMayNameRollouts patches the CRDs of the notification-controller
// that the control plane runs, which is from Flux 2.6. Newer releases of Flux serve fewer
// versions of these CRDs.
func TestAlertsAndReceiversMayNameRollouts(t *testing.T) {
	for component, without := range map[string][]string{
		"flux-2.6": nil,
		"flux-2.7": {"v1beta1"},
		"flux-2.9": {"v1beta1", "v1beta2"},
	} {
		t.Run(component, func(t *testing.T) {
			g := NewWithT(t)
			crds := notificationCRDs(t, without)
			rendered, err := manifests.Patched(t.Context(), "config/notification/"+component, crds...)
			g.Expect(err).NotTo(HaveOccurred())
			for _, before := range crds {
				at := slices.IndexFunc(rendered, func(o *unstructured.Unstructured) bool { return o.GetName() == before.GetName() })
				g.Expect(at).To(BeNumerically(">=", 0))
				for _, list := range kindLists(g, before) {
					g.Expect(list).To(And(ContainElement("OCIRepository"), Not(ContainElement("Rollout"))))
				}
				addKind(g, before, "Rollout")
				g.Expect(rendered[at].Object).To(Equal(before.Object), "nothing else of %s is changed", before.GetName())
			}
		})
	}
}

func TestWrongPatchForAFluxReleaseIsAnError(t *testing.T) {
	_, err := manifests.Patched(t.Context(), "config/notification/flux-2.6",
		notificationCRDs(t, []string{"v1beta1", "v1beta2"})...)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("/spec/versions/1/")))
}

func TestNotificationControllerMaySelectAndAnnotateRollouts(t *testing.T) {
	g := NewWithT(t)
	objects, err := manifests.Kustomize(t.Context(), "config/notification/rbac")
	g.Expect(err).NotTo(HaveOccurred())
	rbac := installation(objects)
	bindings := decode[rbacv1.ClusterRoleBinding](t, rbac, "ClusterRoleBinding")
	g.Expect(bindings).To(HaveLen(1))
	g.Expect(bindings[0].Subjects).To(ConsistOf(rbacv1.Subject{Kind: "ServiceAccount", Name: "notification-controller", Namespace: "flux-system"}))
	g.Expect(rbac.role(t, bindings[0].RoleRef.Name).Rules).To(ConsistOf(rbacv1.PolicyRule{
		APIGroups: []string{"kuberik.com"}, Resources: []string{"rollouts"}, Verbs: []string{"get", "list", "watch", "patch"},
	}))
}

// notificationCRDs returns Flux's CRDs of Alerts and Receivers without some of their
// versions.
func notificationCRDs(t *testing.T, without []string) []*unstructured.Unstructured {
	t.Helper()
	g := NewWithT(t)
	source, err := parts.Source(t.Context(), parts.NotificationController)
	g.Expect(err).NotTo(HaveOccurred())
	var crds []*unstructured.Unstructured
	for name := range kindsOf {
		kind, group, _ := strings.Cut(name, ".")
		content, err := os.ReadFile(filepath.Join(source, "config", "crd", "bases", group+"_"+kind+".yaml"))
		g.Expect(err).NotTo(HaveOccurred())
		crd, err := manifests.Decode(content)
		g.Expect(err).NotTo(HaveOccurred())
		crds = append(crds, crd...)
	}
	for _, crd := range crds {
		eachVersion(g, crd, func(all []any) []any {
			return slices.DeleteFunc(all, func(v any) bool { return slices.Contains(without, v.(map[string]any)["name"].(string)) })
		})
	}
	return crds
}

func eachVersion(g *WithT, crd *unstructured.Unstructured, change func([]any) []any) {
	versions, found, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	g.Expect(found, err).To(BeTrue())
	g.Expect(unstructured.SetNestedSlice(crd.Object, change(versions), "spec", "versions")).To(Succeed())
}

func enumOf(crd *unstructured.Unstructured) []string {
	return []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", kindsOf[crd.GetName()],
		"items", "properties", "kind", "enum"}
}

func kindLists(g *WithT, crd *unstructured.Unstructured) [][]string {
	var lists [][]string
	eachVersion(g, crd, func(versions []any) []any {
		for _, v := range versions {
			list, found, err := unstructured.NestedStringSlice(v.(map[string]any), enumOf(crd)...)
			g.Expect(found, err).To(BeTrue())
			lists = append(lists, list)
		}
		return versions
	})
	return lists
}

func addKind(g *WithT, crd *unstructured.Unstructured, kind string) {
	eachVersion(g, crd, func(versions []any) []any {
		for _, v := range versions {
			list, _, err := unstructured.NestedStringSlice(v.(map[string]any), enumOf(crd)...)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(unstructured.SetNestedStringSlice(v.(map[string]any), append(list, kind), enumOf(crd)...)).To(Succeed())
		}
		return versions
	})
}
