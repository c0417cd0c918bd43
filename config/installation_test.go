// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

// Flux uses the root of the artifact if no other path is set.
func TestRootInstallsWhatDefaultInstalls(t *testing.T) {
	g := NewWithT(t)
	root, err := manifests.Kustomize(t.Context(), "config")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(installation(root)).To(Equal(installed(t)))
}

func TestServiceAndNetworkPolicySelectThePodsAndTheirPorts(t *testing.T) {
	g := NewWithT(t)
	install := installed(t)
	pod := decode[appsv1.Deployment](t, install, "Deployment")[0].Spec.Template
	var ports []string
	for _, port := range pod.Spec.Containers[0].Ports {
		ports = append(ports, port.Name)
	}

	services := decode[corev1.Service](t, install, "Service")
	g.Expect(services).To(HaveLen(1))
	g.Expect(labels.SelectorFromSet(services[0].Spec.Selector).Matches(labels.Set(pod.Labels))).To(BeTrue())
	g.Expect(ports).To(ContainElement(services[0].Spec.Ports[0].TargetPort.String()))

	policies := decode[networkingv1.NetworkPolicy](t, install, "NetworkPolicy")
	g.Expect(policies).To(HaveLen(1))
	g.Expect(labels.SelectorFromSet(policies[0].Spec.PodSelector.MatchLabels).Matches(labels.Set(pod.Labels))).To(BeTrue())
	var admitted []string
	for _, port := range policies[0].Spec.Ingress[0].Ports {
		admitted = append(admitted, port.Port.String())
	}
	g.Expect(admitted).To(ConsistOf(ports))
}

// If Flux pruned the CRDs together with its Kustomization, all Rollouts would be deleted.
func TestFluxNeverPrunesTheCRDs(t *testing.T) {
	g := NewWithT(t)
	crds := ofKind(installed(t), "CustomResourceDefinition")
	g.Expect(crds).To(HaveLen(10))
	for _, crd := range crds {
		g.Expect(crd.GetAnnotations()).To(HaveKeyWithValue("kustomize.toolkit.fluxcd.io/prune", "disabled"), crd.GetName())
	}
}

func TestHighAvailabilityAddsAReplicaAndABudget(t *testing.T) {
	g := NewWithT(t)
	install := with(t, "high-availability")
	deployment := decode[appsv1.Deployment](t, install, "Deployment")[0]
	g.Expect(*deployment.Spec.Replicas).To(BeNumerically("==", 2))
	spread := deployment.Spec.Template.Spec.TopologySpreadConstraints
	g.Expect(spread).To(HaveLen(1))
	g.Expect(spread[0].LabelSelector).To(Equal(deployment.Spec.Selector))

	budgets := decode[policyv1.PodDisruptionBudget](t, install, "PodDisruptionBudget")
	g.Expect(budgets).To(HaveLen(1))
	g.Expect(budgets[0].Namespace).To(Equal(deployment.Namespace))
	g.Expect(budgets[0].Spec.Selector).To(Equal(deployment.Spec.Selector))
}

func TestTenancyLockdownAddsOneArgument(t *testing.T) {
	g := NewWithT(t)
	g.Expect(args(t, with(t, "tenancy-lockdown"))).To(Equal(append(args(t, installed(t)), "--no-cross-namespace-refs")))
}

func TestNotificationAccessAdmitsThePodsOfTheController(t *testing.T) {
	g := NewWithT(t)
	install := with(t, "notification-access")
	pod := decode[appsv1.Deployment](t, install, "Deployment")[0].Spec.Template
	policies := slices.DeleteFunc(decode[networkingv1.NetworkPolicy](t, install, "NetworkPolicy"),
		func(p networkingv1.NetworkPolicy) bool { return p.Namespace != "flux-system" })
	g.Expect(policies).To(HaveLen(1))
	from := policies[0].Spec.Ingress[0].From[0]
	g.Expect(from.NamespaceSelector.MatchLabels).To(HaveKeyWithValue("kubernetes.io/metadata.name", "kuberik-system"))
	g.Expect(labels.SelectorFromSet(from.PodSelector.MatchLabels).Matches(labels.Set(pod.Labels))).To(BeTrue())
}

func TestShardingSharesTheWorkBetweenTwoDeployments(t *testing.T) {
	g := NewWithT(t)
	install := with(t, "sharding", "tenancy-lockdown")
	deployments := decode[appsv1.Deployment](t, install, "Deployment")
	g.Expect(deployments).To(HaveLen(2))
	main, shard := deployments[0], deployments[1]
	g.Expect([]string{main.Name, shard.Name}).To(Equal([]string{
		"rollout-controller-controller-manager", "rollout-controller-controller-manager-shard1",
	}))
	selectors := map[string]string{main.Name: "!sharding.fluxcd.io/key", shard.Name: "sharding.fluxcd.io/key=shard1"}
	for _, d := range deployments {
		g.Expect(d.Spec.Template.Spec.Containers[0].Args).To(Equal(append(args(t, installed(t)),
			"--watch-label-selector="+selectors[d.Name], "--no-cross-namespace-refs")), d.Name)
		g.Expect(d.Spec.Template.Spec.ServiceAccountName).To(Equal("rollout-controller-controller-manager"), d.Name)
		selector := labels.SelectorFromSet(d.Spec.Selector.MatchLabels)
		for _, other := range deployments {
			g.Expect(selector.Matches(labels.Set(other.Spec.Template.Labels))).To(Equal(other.Name == d.Name), "%s selects pods of %s", d.Name, other.Name)
		}
	}
	services := decode[corev1.Service](t, install, "Service")
	g.Expect(services).To(HaveLen(2))
	g.Expect(services[1].Spec.Selector).To(Equal(shard.Spec.Selector.MatchLabels))
	g.Expect(decode[networkingv1.NetworkPolicy](t, install, "NetworkPolicy")[1].Spec.PodSelector).To(Equal(*shard.Spec.Selector))
}

// with renders config/default with some components.
func with(t *testing.T, components ...string) installation {
	t.Helper()
	install, err := manifests.WithComponents(t.Context(), components...)
	if err != nil {
		t.Fatal(err)
	}
	return install
}

// args returns the arguments of the controller.
func args(t *testing.T, install installation) []string {
	t.Helper()
	return decode[appsv1.Deployment](t, install, "Deployment")[0].Spec.Template.Spec.Containers[0].Args
}

func ofKind(install installation, kind string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(install), func(o *unstructured.Unstructured) bool { return o.GetKind() != kind })
}
