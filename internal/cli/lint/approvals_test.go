// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
)

func TestRoleOfAGateThatNobodyHasIsFound(t *testing.T) {
	const nobody = "R405 ClusterRolloutGate prod"
	for name, tt := range map[string]struct {
		resource, verb, role string
		want                 []string
	}{
		"another role":               {"rollouts", "approve:security", "safety", []string{nobody}},
		"the role":                   {"rollouts", "approve:security", "security", nil},
		"all verbs":                  {"rollouts", "*", "security", nil},
		"all resources":              {"*", "approve:other", "security", []string{nobody}},
		"a verb on something else":   {"pods", "approve:other", "security", nil},
		"no verb of a role at all":   {"rollouts", "approve", "security", nil},
		"a variable":                 {"rollouts", "approve:security", "${ROLE}", []string{"R101? ClusterRolloutGate prod"}},
		"a gate that asks no role":   {"rollouts", "approve:security", "", nil},
		"a role that cannot be read": {"rollouts", "approve:security", "No Role", []string{"R101 ClusterRolloutGate prod", nobody}},
	} {
		t.Run(name, func(t *testing.T) {
			approvals := "count: 2"
			if tt.role != "" {
				approvals = fmt.Sprintf("role: %q", tt.role)
			}
			content := join("apiVersion: kuberik.com/v1alpha1\nkind: ClusterRolloutGate\nmetadata: {name: prod}\nspec:\n  approvals:\n    "+approvals+"\n",
				fmt.Sprintf("\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\nrules:\n- apiGroups: [kuberik.com]\n  resources: [%q]\n  verbs: [%q]\n", tt.resource, tt.verb))
			NewWithT(t).Expect(described(lint.Files([]lint.File{{Name: "all.yaml", Content: []byte(content)}}, lint.Options{Now: noon}))).To(ConsistOf(tt.want))
		})
	}
}
