// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/fluxrollouts/rollout-controller/internal/admission"
	"github.com/fluxrollouts/rollout-controller/internal/admission/webhook"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

var holdNames = admission.NamesOf(admission.Installation, manifests.Namespace)

func TestWebhookIsAskedAsItAlwaysWas(t *testing.T) {
	g := NewWithT(t)
	install := with(t, "../coordination/webhook")
	configuration := decode[admissionv1.MutatingWebhookConfiguration](t, install, "MutatingWebhookConfiguration")[0]
	g.Expect(configuration.Name).To(Equal(holdNames.Webhook))
	g.Expect(configuration.Labels).To(HaveKeyWithValue(admission.PartOfLabel, admission.PartOf))
	g.Expect(configuration.Webhooks).To(HaveLen(1))
	called := configuration.Webhooks[0]
	g.Expect(called.Name).To(Equal("kube-deployment-coordinator.containerinfra.nl"))
	g.Expect(called.Name).To(Equal(admission.WebhookName))
	g.Expect(called.AdmissionReviewVersions).To(Equal([]string{"v1"}))
	g.Expect(called.SideEffects).To(HaveValue(Equal(admissionv1.SideEffectClassNone)))
	g.Expect(called.FailurePolicy).To(HaveValue(Equal(admissionv1.Ignore)))
	g.Expect(called.TimeoutSeconds).To(HaveValue(Equal(int32(2))))
	g.Expect(called.Rules).To(Equal(onlyDeployments()))
	g.Expect(called.ClientConfig.CABundle).To(BeEmpty(), "whoever applies the manifests would own it")
	g.Expect(called.ClientConfig.Service).To(Equal(&admissionv1.ServiceReference{
		Namespace: manifests.Namespace, Name: holdNames.Webhook, Path: ptr.To("/mutate-apps-v1-deployment"), Port: ptr.To[int32](443),
	}))
	g.Expect(*called.ClientConfig.Service.Path).To(Equal(webhook.Path))
}

func onlyDeployments() []admissionv1.RuleWithOperations {
	return []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule: admissionv1.Rule{
			APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"},
			Scope: ptr.To(admissionv1.NamespacedScope),
		},
	}}
}

func TestWebhookCanBeReached(t *testing.T) {
	g := NewWithT(t)
	install := with(t, "../coordination/webhook")
	deployment := decode[appsv1.Deployment](t, install, "Deployment")[0]
	g.Expect(deployment.Spec.Template.Spec.Containers[0].Ports).To(ContainElement(corev1.ContainerPort{Name: "webhook", ContainerPort: 9443}))
	found := false
	for _, service := range decode[corev1.Service](t, install, "Service") {
		if service.Name == holdNames.Webhook {
			found = true
			g.Expect(service.Namespace).To(Equal(deployment.Namespace))
			g.Expect(labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(deployment.Spec.Template.Labels))).To(BeTrue())
			g.Expect(service.Spec.Ports[0].Port).To(Equal(int32(443)))
			g.Expect(service.Spec.Ports[0].TargetPort.String()).To(Equal("webhook"))
		}
	}
	g.Expect(found).To(BeTrue())
	var admitted []string
	for _, port := range decode[networkingv1.NetworkPolicy](t, install, "NetworkPolicy")[0].Spec.Ingress[0].Ports {
		admitted = append(admitted, port.Port.String())
	}
	g.Expect(admitted).To(ContainElement("webhook"))
}

func TestWebhookNeedsRightsToTwoNamedObjects(t *testing.T) {
	g := NewWithT(t)
	install := with(t, "../coordination/webhook")
	named := map[string]rbacv1.PolicyRule{}
	for _, role := range decode[rbacv1.ClusterRole](t, install, "ClusterRole", "Role") {
		if role.Name != holdNames.Webhook && role.Name != holdNames.Certificate.Name {
			continue
		}
		for _, rule := range role.Rules {
			if len(rule.ResourceNames) == 0 {
				g.Expect(rule).To(Equal(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}}))
				g.Expect(role.Namespace).To(Equal(manifests.Namespace))
				continue
			}
			g.Expect(rule.ResourceNames).To(HaveLen(1))
			named[rule.ResourceNames[0]] = rule
		}
	}
	g.Expect(named).To(HaveLen(2))
	g.Expect(named[holdNames.Webhook].Verbs).To(ConsistOf("get", "list", "watch", "patch"))
	g.Expect(named[holdNames.Certificate.Name].Verbs).To(ConsistOf("get", "list", "watch", "update"))
}

func TestPolicyFailsOpenAndReadsTheCoordinationsOfTheNamespace(t *testing.T) {
	g := NewWithT(t)
	install := with(t, "../coordination/admission-policy")
	policy := decode[admissionv1.MutatingAdmissionPolicy](t, install, "MutatingAdmissionPolicy")[0]
	g.Expect(policy.Name).To(Equal(holdNames.Policy))
	g.Expect(policy.Spec.FailurePolicy).To(HaveValue(Equal(admissionv1.Ignore)))
	g.Expect(policy.Spec.ParamKind).To(Equal(&admissionv1.ParamKind{APIVersion: "apps.containerinfra.nl/v1", Kind: "DeploymentCoordination"}))
	rule := policy.Spec.MatchConstraints.ResourceRules[0]
	g.Expect(policy.Spec.MatchConstraints.ResourceRules).To(HaveLen(1))
	g.Expect(rule.Resources).To(Equal([]string{"deployments"}), "and neither their scale nor their status")
	g.Expect(rule.Operations).To(Equal([]admissionv1.OperationType{admissionv1.Create, admissionv1.Update}))
	binding := decode[admissionv1.MutatingAdmissionPolicyBinding](t, install, "MutatingAdmissionPolicyBinding")[0]
	g.Expect(binding.Name).To(Equal(holdNames.Policy))
	g.Expect(binding.Spec.PolicyName).To(Equal(policy.Name))
	g.Expect(binding.Spec.ParamRef.Namespace).To(BeEmpty(), "that of the Deployment")
	g.Expect(binding.Spec.ParamRef.ParameterNotFoundAction).To(HaveValue(Equal(admissionv1.AllowAction)))
}

func TestControllerIsExemptUnderWhateverNameItIsInstalled(t *testing.T) {
	for name, c := range map[string]struct{ namespace, prefix, account string }{
		"as it is": {manifests.Namespace, "", "rollout-controller-controller-manager"},
		"changed":  {"delivery", "team-", "team-rollout-controller-controller-manager"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			install := renamed(t, c.namespace, c.prefix)
			policy := decode[admissionv1.MutatingAdmissionPolicy](t, install, "MutatingAdmissionPolicy")[0]
			called := decode[admissionv1.MutatingWebhookConfiguration](t, install, "MutatingWebhookConfiguration")[0].Webhooks[0]
			want := admissionv1.MatchCondition{
				Name:       "not-by-the-controller",
				Expression: fmt.Sprintf("request.userInfo.username != 'system:serviceaccount:' + '%s' + ':' + '%s'", c.namespace, c.account),
			}
			g.Expect(policy.Spec.MatchConditions).To(ContainElement(want))
			g.Expect(called.MatchConditions).To(ContainElement(want))
			for _, selector := range []*metav1.LabelSelector{policy.Spec.MatchConstraints.NamespaceSelector, called.NamespaceSelector} {
				g.Expect(selector.MatchExpressions[0].Values).To(ConsistOf("kube-system", c.namespace))
			}
			g.Expect(called.ClientConfig.Service.Namespace).To(Equal(c.namespace))
			subjects := 0
			for _, binding := range decode[rbacv1.ClusterRoleBinding](t, install, "ClusterRoleBinding", "RoleBinding") {
				if binding.Name == holdNames.Webhook || binding.Name == holdNames.Certificate.Name {
					subjects++
					g.Expect(binding.Subjects).To(Equal([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: c.namespace, Name: c.account}}))
				}
			}
			g.Expect(subjects).To(Equal(2))
		})
	}
}

// renamed renders config/default under another namespace and prefix, with both
// components on top of it.
func renamed(t *testing.T, namespace, prefix string) installation {
	t.Helper()
	g := NewWithT(t)
	folder := t.TempDir()
	root, err := filepath.Rel(folder, parts.Root()) // kustomize accepts no absolute paths
	g.Expect(err).NotTo(HaveOccurred())
	write := func(path, text string, arguments ...any) {
		g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(folder, path)), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(folder, path), fmt.Appendf(nil, text, arguments...), 0o600)).To(Succeed())
	}
	write("base/kustomization.yaml", "namespace: %s\nnamePrefix: %q\nresources:\n- ../%s/%s\n", namespace, prefix, root, manifests.Default)
	write("kustomization.yaml", "resources:\n- base\ncomponents:\n- %[1]s/admission-policy\n- %[1]s/webhook\n",
		filepath.Join(root, "config", "coordination"))
	relative, err := filepath.Rel(parts.Root(), folder)
	g.Expect(err).NotTo(HaveOccurred())
	install, err := manifests.Kustomize(t.Context(), relative)
	g.Expect(err).NotTo(HaveOccurred())
	return install
}
