// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// minimum is the documented Role.
var minimum = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "get", "watch", "delete"}},
	{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: []string{"list", "get", "watch"}},
	{APIGroups: []string{"apps"}, Resources: []string{"statefulsets/status"}, Verbs: []string{"update"}},
}

// operator returns a ServiceAccount of the namespace that has exactly these permissions.
func (s *testEnv) operator(rules ...rbacv1.PolicyRule) (*rest.Config, string) {
	meta := metav1.ObjectMeta{Namespace: s.Namespace, Name: "rollout-operator"}
	s.Expect(s.Create(s.Ctx, &corev1.ServiceAccount{ObjectMeta: meta})).To(Succeed())
	s.Expect(s.Create(s.Ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules})).To(Succeed())
	s.Expect(s.Create(s.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: meta.Name}},
	})).To(Succeed())
	name := "system:serviceaccount:" + meta.Namespace + ":" + meta.Name
	user, err := testPlane.RESTConfigFor(name, "system:serviceaccounts", "system:serviceaccounts:"+meta.Namespace, "system:authenticated")
	s.Expect(err).NotTo(HaveOccurred())
	return user, name
}

// asked returns the requests of a user.
func (s *testEnv) asked(user string) []controlplane.Audited {
	all, err := testPlane.Audited()
	s.Expect(err).NotTo(HaveOccurred())
	return slices.DeleteFunc(all, func(a controlplane.Audited) bool { return a.User != user })
}

func TestDocumentedRoleIsEnough(t *testing.T) {
	s := open(t, zone("zone-a", 2), zone("zone-b", 2))
	user, name := s.operator(minimum...)
	stop := s.playAs(t, user)
	s.release("2.0.0", "zone-a", "zone-b")
	s.runs("2.0.0", "zone-a", "zone-b")
	stop()

	asked := s.asked(name)
	s.Expect(asked).NotTo(BeEmpty())
	var reviews, kinds []string
	for _, a := range asked {
		s.Expect(a.Code).NotTo(Equal(403), a.String())
		if strings.Contains(a.Resource, "selfsubjectaccessreviews") {
			reviews = append(reviews, a.String())
			continue
		}
		s.Expect(a.Namespace).To(Equal(s.Namespace), a.String())
		if kind := a.Verb + " " + a.Resource; !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	s.Expect(kinds).To(ConsistOf("list apps/statefulsets", "watch apps/statefulsets", "list /pods", "watch /pods",
		"delete /pods", "update apps/statefulsets/status"))
	s.Expect(reviews).To(HaveLen(1), "whether events may be created is asked once")
	s.Expect(s.Events.All()).To(BeEmpty(), "nor is anything sent that would be refused")
}

// The status of a complete set is for alerts. Without the permission to write it, the
// next zone is still rolled out.
func TestSetThatCannotBePromotedHoldsUpNoOther(t *testing.T) {
	s := open(t, zone("zone-a", 1), zone("zone-b", 1))
	user, _ := s.operator(minimum[:2]...)
	s.playAs(t, user)
	s.release("2.0.0", "zone-a", "zone-b")
	s.Eventually(s.guard.took).Should(Equal([]string{"zone-a-0", "zone-b-0"}))
	s.Eventually(func() map[string]string { return s.pods("zone-b") }).Should(HaveKeyWithValue("zone-b-0", "2.0.0"))
	s.Expect(s.set("zone-a").Status.CurrentRevision).NotTo(Equal(s.set("zone-a").Status.UpdateRevision))
}

func TestDisruptionBudgetIsRespectedWherePodsAreEvicted(t *testing.T) {
	s := open(t, zone("zone-a", 2))
	none := intstr.FromInt32(0)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "zone-a"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "zone-a"}},
		},
	}
	s.Expect(s.Create(s.Ctx, budget)).To(Succeed())
	s.Eventually(func() int32 {
		s.Expect(s.Get(s.Ctx, keyOf(budget), budget)).To(Succeed())
		return budget.Status.CurrentHealthy
	}).Should(BeEquivalentTo(2))
	user, name := s.operator(append(minimum,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}})...)
	s.evicts = true
	s.playAs(t, user)
	s.release("2.0.0", "zone-a")

	s.Eventually(func() []fixture.Event { return s.Events.All() }).Should(ContainElement(And(
		HaveField("On", "zone-a"), HaveField("Reason", rolloutgroup.RolloutBlockedEvent),
		HaveField("Message", ContainSubstring("The disruption budget zone-a needs 2 healthy pods")))))
	s.Eventually(func() string { return s.blocked("ingester") }).Should(Equal(rolloutgroup.EvictionRefusedReason))
	s.Consistently(s.guard.took).Should(BeEmpty())

	s.Expect(s.Delete(s.Ctx, budget)).To(Succeed())
	s.runs("2.0.0", "zone-a")
	s.Expect(s.guard.took()).To(Equal([]string{"zone-a-0", "zone-a-1"}))
	s.Expect(s.blocked("ingester")).To(BeEmpty())
	refusals := slices.DeleteFunc(s.Events.All(), func(e fixture.Event) bool { return e.Reason != rolloutgroup.RolloutBlockedEvent })
	s.Expect(refusals).To(HaveLen(1), "it is reported once, however often it is tried")
	for _, a := range s.asked(name) {
		s.Expect(a.Verb+" "+a.Resource).NotTo(Equal("delete /pods"), "pods are evicted")
	}
}

func TestEvictionNeedsNoBudget(t *testing.T) {
	s := open(t, zone("zone-a", 2))
	s.evicts = true
	s.play(t)
	s.release("2.0.0", "zone-a")
	s.runs("2.0.0", "zone-a")
	s.Expect(s.requests.about("DELETE ")).To(BeEmpty())
}
