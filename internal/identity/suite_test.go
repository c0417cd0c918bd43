// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

var (
	plane      *controlplane.ControlPlane
	everything client.WithWatch
)

func TestMain(m *testing.M) { env.Main(m, &plane, &everything) }

// testEnv is a namespace in which users have rights by the roles that are shipped.
type testEnv struct {
	*WithT
	t         *testing.T
	namespace string
}

// open installs components, and gives alice and bob the role of approvers.
func open(t *testing.T, components ...string) *testEnv {
	t.Helper()
	s := &testEnv{WithT: NewWithT(t), t: t}
	s.install(components...)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	s.Expect(everything.Create(t.Context(), namespace)).To(Succeed())
	s.namespace = namespace.Name
	for _, user := range []string{"alice", "bob"} {
		s.bind("release-approver-role", user)
	}
	return s
}

// install applies the roles for users, and the policies of components. It returns once the
// policies are in force, and removes them at the end of the test.
func (s *testEnv) install(components ...string) {
	s.t.Helper()
	objects, err := manifests.WithComponents(s.t.Context(), components...)
	s.Expect(err).NotTo(HaveOccurred())
	for _, o := range objects {
		policy := o.GroupVersionKind().Group == "admissionregistration.k8s.io"
		if !policy && o.GetKind() != "ClusterRole" {
			continue
		}
		apply(s, o)
		if policy {
			s.t.Cleanup(func() { s.Expect(client.IgnoreNotFound(everything.Delete(context.Background(), o))).To(Succeed()) })
		}
	}
}

func apply(s *testEnv, o *unstructured.Unstructured) {
	s.t.Helper()
	o.SetManagedFields(nil)
	s.Expect(everything.Apply(s.t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("installer"), client.ForceOwnership)).To(Succeed())
}

// inForce waits until the API server refuses what the policy about approvals refuses.
func (s *testEnv) inForce() *testEnv {
	s.t.Helper()
	s.Eventually(func() error {
		return s.as("alice").Create(s.t.Context(), here(s, s.approval("bob").Named("probe").Obj()), client.DryRunAll)
	}).Should(MatchError(ContainSubstring("spec.by.username must be your own name")))
	return s
}

func (s *testEnv) bind(role, user string) {
	s.t.Helper()
	s.Expect(everything.Create(s.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, GenerateName: "bind-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "rollout-controller-" + role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	})).To(Succeed())
}

// allow gives a user or a group verbs on a Rollout, or on all of them, and on what creates
// approvals.
func (s *testEnv) allow(subject rbacv1.Subject, rollout string, verbs ...string) {
	s.t.Helper()
	subject.APIGroup = rbacv1.GroupName
	on := rbacv1.PolicyRule{APIGroups: []string{"kuberik.com"}, Resources: []string{"rollouts"}, Verbs: verbs}
	if rollout != "" {
		on.ResourceNames = []string{rollout}
	}
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, GenerateName: "may-"},
		Rules: []rbacv1.PolicyRule{on, {
			APIGroups: []string{"kuberik.com"}, Resources: []string{"rolloutapprovals"}, Verbs: []string{"create", "update", "patch", "delete", "get"},
		}},
	}
	s.Expect(everything.Create(s.t.Context(), role)).To(Succeed())
	s.Expect(everything.Create(s.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}, Subjects: []rbacv1.Subject{subject},
	})).To(Succeed())
}

func user(name string) rbacv1.Subject { return rbacv1.Subject{Kind: rbacv1.UserKind, Name: name} }

func (s *testEnv) as(name string, groups ...string) client.Client {
	s.t.Helper()
	config, err := plane.RESTConfigFor(name, groups...)
	s.Expect(err).NotTo(HaveOccurred())
	c, err := client.New(config, client.Options{Scheme: env.Scheme()})
	s.Expect(err).NotTo(HaveOccurred())
	return c
}

// creates has a user create an approval, as soon as their rights are known.
func (s *testEnv) creates(name string, a *v1alpha1.RolloutApproval, groups ...string) error {
	s.t.Helper()
	c := s.as(name, groups...)
	var err error
	s.Eventually(func() bool {
		err = c.Create(s.t.Context(), here(s, a))
		return !isWithoutRight(err)
	}).Should(BeTrue())
	return err
}

// isWithoutRight reports whether RBAC itself refuses.
func isWithoutRight(err error) bool {
	return apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
}

// approval is an approval of shop 1.0.0 under a name.
func (s *testEnv) approval(by string) *fixture.ApprovalBuilder {
	return fixture.MakeApproval(by, "shop", "1.0.0")
}

// here moves an object to the namespace.
func here[T client.Object](s *testEnv, o T) T {
	o.SetNamespace(s.namespace)
	return o
}

// raw returns an object without its type, so that fields can be left out.
func raw(t *testing.T, o client.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func byOf(o client.Object) string {
	name, _, _ := unstructured.NestedString(o.(*unstructured.Unstructured).Object, "spec", "by", "username")
	return name
}
