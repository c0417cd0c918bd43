// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// removal is the name of the policy and of its binding.
const removal = "pods-are-removed-once"

// refuseLateRemovals makes the API server refuse to KWOK to remove a pod that is not being
// deleted. KWOK removes pods by their names; a kubelet names the UID, too. On a busy
// machine KWOK may do so twice, and the second time remove the pod that a StatefulSet has
// created in place of the first. KWOK does not repeat what is refused.
func (c *ControlPlane) refuseLateRemovals(ctx context.Context) error {
	for _, o := range []client.Object{removalPolicy(), removalBinding()} {
		if err := c.client.Create(ctx, o); err != nil {
			return fmt.Errorf("create %T %s: %w", o, removal, err)
		}
	}
	return nil
}

func removalPolicy() *admissionv1.ValidatingAdmissionPolicy {
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: removal},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Delete},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				},
			}}},
			MatchConditions: []admissionv1.MatchCondition{{Name: "kwok", Expression: fmt.Sprintf("request.userInfo.username == %q", kwokUser)}},
			Validations: []admissionv1.Validation{{
				Expression: "has(oldObject.metadata.deletionTimestamp)",
				Message:    "this pod is not being deleted",
			}},
		},
	}
}

func removalBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: removal},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: removal, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
}
