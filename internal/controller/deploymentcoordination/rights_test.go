// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// The generated role is sufficient. Without the permission to create events everything
// else works, without errors.
func TestRoleIsEnoughEvenWithoutEvents(t *testing.T) {
	t.Parallel()
	for name, events := range map[string]bool{"as it is generated": true, "without events": false} {
		t.Run(name, func(t *testing.T) {
			s := openStreet(t)
			user := "user-of-" + s.Namespace
			s.grant(user, func(r rbacv1.PolicyRule) bool { return events || !slices.Contains(r.Resources, "events") })
			config, err := s.plane.RESTConfigFor(user)
			s.Expect(err).NotTo(HaveOccurred())
			s.deploy([]string{"a", "b"}, paused(true))
			s.coordinate("shop")
			s.playAs(config)
			s.idles("shop", "a", "b")
			if events {
				s.Eventually(func() []string { return s.emitted("shop") }).ShouldNot(BeEmpty())
			} else {
				s.Expect(s.emitted("shop")).To(BeEmpty())
			}
		})
	}
}

// grant gives a user the wanted rules of the generated role, in the namespace.
func (s *street) grant(user string, wanted func(rbacv1.PolicyRule) bool) {
	content, err := os.ReadFile(filepath.Join(parts.Root(), "config", "coordination", "rbac", "role.yaml"))
	s.Expect(err).NotTo(HaveOccurred())
	generated := &rbacv1.ClusterRole{}
	s.Expect(yaml.UnmarshalStrict(content, generated)).To(Succeed())
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "coordinator"}}
	for _, rule := range generated.Rules {
		if wanted(rule) {
			role.Rules = append(role.Rules, rule)
		}
	}
	s.Expect(s.Create(s.Ctx, role)).To(Succeed())
	s.Expect(s.Create(s.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	})).To(Succeed())
}
