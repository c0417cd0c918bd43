// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestOperationsListsEveryRoleOfTheController(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("../docs/operations.md")
	g.Expect(err).NotTo(HaveOccurred())
	bindings := decode[rbacv1.ClusterRoleBinding](t, installed(t), "ClusterRoleBinding")
	g.Expect(bindings).NotTo(BeEmpty())
	for _, binding := range bindings {
		row := "\n| `" + strings.TrimPrefix(binding.RoleRef.Name, "rollout-controller-") + "` |"
		g.Expect(string(page)).To(ContainSubstring(row))
	}
}
