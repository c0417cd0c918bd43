// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

func TestDefaultInstallationCannotTouchPods(t *testing.T) {
	g := NewWithT(t)
	for _, role := range installed(t).roles(t) {
		for resource, most := range map[string][]string{
			"/pods":            {"get", "list", "watch"},
			"apps/deployments": {"get", "list", "watch"}, "apps/statefulsets": {"get", "list", "watch"}, "apps/statefulsets/status": nil,
		} {
			for _, verb := range allowedVerbs(role.Rules, resource) {
				g.Expect(most).To(ContainElement(verb), role.Name+" "+resource)
			}
		}
	}
	g.Expect(installed(t).names()).NotTo(ContainElement(ContainSubstring("deploymentcoordination")))
}

func TestDeploymentCoordinationAddsItsKindItsRolesAndAnArgument(t *testing.T) {
	g := NewWithT(t)
	install := with(t, "deployment-coordination")
	g.Expect(args(t, install)).To(Equal(append(args(t, installed(t)), "--controllers=*,deploymentcoordination")))
	g.Expect(install.names()).To(ContainElements(
		"CustomResourceDefinition/deploymentcoordinations.apps.containerinfra.nl",
		"ClusterRole/rollout-controller-deploymentcoordination-role",
	))
	for _, crd := range ofKind(install, "CustomResourceDefinition") {
		g.Expect(crd.GetAnnotations()).To(HaveKeyWithValue("kustomize.toolkit.fluxcd.io/prune", "disabled"), crd.GetName())
	}
	policies := decode[admissionv1.MutatingAdmissionPolicy](t, install, "MutatingAdmissionPolicy")
	g.Expect(policies).To(HaveLen(1))
	g.Expect(policies[0].Spec.MatchConditions[0].Expression).To(And(
		ContainSubstring("'kuberik-system'"), ContainSubstring("'rollout-controller-controller-manager'")), "the controller may release")
	rules := install.role(t, "rollout-controller-deploymentcoordination-role").Rules
	g.Expect(allowedVerbs(rules, "apps/deployments")).To(ConsistOf("get", "list", "watch", "patch"))
	for role, into := range map[string]string{"viewer": "view", "editor": "edit"} {
		labels := install.role(t, "rollout-controller-deploymentcoordination-"+role+"-role").Labels
		g.Expect(labels).To(HaveKeyWithValue("rbac.authorization.k8s.io/aggregate-to-"+into, "true"))
	}
	bindingsAreTheControllers(t, install, "rollout-controller-controller-manager", "kuberik-system")
}

func TestStatefulSetRolloutAddsItsRoleAndAnArgument(t *testing.T) {
	g := NewWithT(t)
	install := with(t, "statefulset-rollout")
	g.Expect(args(t, install)).To(Equal(append(args(t, installed(t)), "--controllers=*,statefulsetrollout")))
	g.Expect(install.role(t, "rollout-controller-statefulsetrollout-role").Rules).To(Equal(minimum))
	bindingsAreTheControllers(t, install, "rollout-controller-controller-manager", "kuberik-system")
}

// Each component adds its own argument, so both can be installed together.
func TestBothCoordinatorsAreNamed(t *testing.T) {
	NewWithT(t).Expect(args(t, with(t, "sharding", "deployment-coordination", "statefulset-rollout"))).To(ContainElements(
		"--watch-label-selector=!sharding.fluxcd.io/key", "--controllers=*,deploymentcoordination", "--controllers=*,statefulsetrollout"))
}

// Case 42 of the page: its own account, which may list and watch Rollouts, no privileges, and
// no way out but to the API server and DNS.
func TestPageHasNoPrivileges(t *testing.T) {
	g := NewWithT(t)
	install := with(t, "web", "statefulset-rollout", "high-availability")
	g.Expect(install.role(t, "rollout-controller-web-role").Rules).To(Equal([]rbacv1.PolicyRule{
		{APIGroups: []string{"kuberik.com"}, Resources: []string{"rollouts"}, Verbs: []string{"list", "watch"}},
	}))
	deployments := decode[appsv1.Deployment](t, install, "Deployment")
	g.Expect(deployments).To(HaveLen(2))
	controller, page := deployments[0], deployments[1]
	pod, container := page.Spec.Template.Spec, page.Spec.Template.Spec.Containers[0]
	g.Expect(pod.ServiceAccountName).To(Equal("rollout-controller-web"))
	g.Expect(pod.SecurityContext).To(Equal(controller.Spec.Template.Spec.SecurityContext))
	g.Expect(container.SecurityContext).To(Equal(controller.Spec.Template.Spec.Containers[0].SecurityContext))
	g.Expect(container.Image).To(Equal(controller.Spec.Template.Spec.Containers[0].Image))
	g.Expect(*page.Spec.Replicas).To(BeEquivalentTo(1), "sessions are in memory")
	g.Expect(container.Args).To(ConsistOf("--public-url=https://rollouts.example.com"), "it has no flag of the controller")
	for _, service := range decode[corev1.Service](t, install, "Service") {
		of := page.Spec.Selector.MatchLabels
		if service.Name != page.Name {
			of = controller.Spec.Selector.MatchLabels
		}
		g.Expect(service.Spec.Selector).To(Equal(of), service.Name)
	}
	for _, policy := range decode[networkingv1.NetworkPolicy](t, install, "NetworkPolicy") {
		if policy.Name == page.Name {
			g.Expect(policy.Spec.PodSelector.MatchLabels).To(Equal(page.Spec.Selector.MatchLabels))
			g.Expect(policy.Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress))
			g.Expect(policy.Spec.Egress).To(HaveLen(2), "the API server, and DNS")
		}
	}
}

// minimum contains all rights that the controller may need to roll StatefulSets by zone.
var minimum = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete", "get", "list", "watch"}},
	{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: []string{"get", "list", "watch"}},
	{APIGroups: []string{"apps"}, Resources: []string{"statefulsets/status"}, Verbs: []string{"update"}},
}

func TestStatefulSetsAloneNeedOneRoleInOneNamespace(t *testing.T) {
	g := NewWithT(t)
	objects, err := manifests.Kustomize(t.Context(), "config/statefulset-rollout")
	g.Expect(err).NotTo(HaveOccurred())
	install := installation(objects)
	g.Expect(install.names()).To(ConsistOf(
		"ServiceAccount/default/statefulset-rollout-controller-manager",
		"Role/default/statefulset-rollout-statefulsetrollout-role",
		"RoleBinding/default/statefulset-rollout-statefulsetrollout-rolebinding",
		"Deployment/default/statefulset-rollout-controller-manager",
		"Service/default/statefulset-rollout-controller-manager-metrics-service",
		"NetworkPolicy/default/statefulset-rollout-controller-manager",
	))
	g.Expect(install.roles(t)[0].Rules).To(Equal(minimum))
	bindingsAreTheControllers(t, install, "statefulset-rollout-controller-manager", "default")
	g.Expect(args(t, install)).To(ContainElements("--controllers=statefulsetrollout", "--leader-elect=false", "--kubernetes.namespace=$(RUNTIME_NAMESPACE)"))
	deployment := decode[appsv1.Deployment](t, install, "Deployment")[0]
	g.Expect(deployment.Spec.Template.Spec.ServiceAccountName).To(Equal("statefulset-rollout-controller-manager"))
	g.Expect(deployment.Spec.Strategy.Type).To(Equal(appsv1.RecreateDeploymentStrategyType))
	service := decode[corev1.Service](t, install, "Service")[0]
	g.Expect(service.Spec.Selector).To(Equal(deployment.Spec.Selector.MatchLabels))
}

func TestControllerKnowsItsOwnDeployment(t *testing.T) {
	g := NewWithT(t)
	alone, err := manifests.Kustomize(t.Context(), "config/statefulset-rollout")
	g.Expect(err).NotTo(HaveOccurred())
	seen := 0
	for _, install := range []installation{installed(t), with(t, "sharding"), alone} {
		for _, d := range decode[appsv1.Deployment](t, install, "Deployment") {
			seen++
			g.Expect(d.Spec.Template.Spec.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "RUNTIME_NAME", Value: d.Name}))
		}
	}
	g.Expect(seen).To(Equal(4))
}

// bindingsAreTheControllers checks that the bindings name the account, and roles that
// exist.
func bindingsAreTheControllers(t *testing.T, install installation, account, namespace string) {
	t.Helper()
	g := NewWithT(t)
	bindings := decode[rbacv1.RoleBinding](t, install, "RoleBinding", "ClusterRoleBinding")
	for _, binding := range bindings {
		g.Expect(binding.Subjects).To(ConsistOf(rbacv1.Subject{Kind: "ServiceAccount", Name: account, Namespace: namespace}), binding.Name)
		g.Expect(install.role(t, binding.RoleRef.Name).Kind).To(Equal(binding.RoleRef.Kind), binding.Name)
	}
	g.Expect(slices.ContainsFunc(bindings, func(b rbacv1.RoleBinding) bool { return strings.HasSuffix(b.Name, "-rolebinding") })).To(BeTrue())
}
