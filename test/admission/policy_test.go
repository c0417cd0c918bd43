// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

const policyForm = "policy"

func TestPolicyHoldsWhatTheRuleHolds(t *testing.T) {
	installPolicy(t)
	for name, c := range Cases(Elsewhere) {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t, policyForm)
			c = Cases(s.namespace)[name]
			s.play(c)
			paused := c.PausedBy
			if c.PausedByPolicy != nil {
				paused = c.PausedByPolicy
			}
			s.expectPaused(c.New, paused)
		})
	}
}

func installPolicy(t *testing.T) {
	t.Helper()
	policy, binding := policy(t)
	install(t, policy, binding)
}

// policy returns the policy of config/default with the component, but only for the
// namespaces of its form.
func policy(t *testing.T) (*admissionv1.MutatingAdmissionPolicy, *admissionv1.MutatingAdmissionPolicyBinding) {
	t.Helper()
	g := NewWithT(t)
	objects := installed(t, policyComponent)
	policies, err := manifests.As[admissionv1.MutatingAdmissionPolicy](objects, "MutatingAdmissionPolicy")
	g.Expect(err).NotTo(HaveOccurred())
	bindings, err := manifests.As[admissionv1.MutatingAdmissionPolicyBinding](objects, "MutatingAdmissionPolicyBinding")
	g.Expect(err).NotTo(HaveOccurred())
	selector := policies[0].Spec.MatchConstraints.NamespaceSelector
	selector.MatchExpressions = append(selector.MatchExpressions, onlyForm(policyForm))
	return &policies[0], &bindings[0]
}

// install creates objects and deletes them at the end of the test.
func install(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		NewWithT(t).Expect(testClient.Create(t.Context(), o)).To(Succeed())
		t.Cleanup(func() { uninstall(t, o) })
	}
}

func onlyForm(form string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: formLabel, Operator: metav1.LabelSelectorOpIn, Values: []string{form}}
}
