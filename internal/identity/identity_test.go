// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestNobodyDecidesUnderAnotherName(t *testing.T) {
	s := open(t, "approvals").inForce()
	s.bind("release-override-role", "alice")
	forged := map[string]*v1alpha1.RolloutApproval{
		"an approval":      s.approval("bob").Obj(),
		"a rejection":      s.approval("bob").Reject().Obj(),
		"an override":      s.approval("bob").Override(time.Hour, "payments are down").Obj(),
		"a similar name":   s.approval("alice ").Obj(),
		"a capital":        s.approval("Alice").Obj(),
		"a ServiceAccount": s.approval("system:serviceaccount:itsm:bot").Named("bot").Obj(),
	}
	for name, a := range forged {
		a.Name = "forged"
		s.Expect(s.creates("alice", a)).To(MatchError(ContainSubstring("spec.by.username must be your own name: alice")), name)
	}
	s.Expect(s.creates("alice", s.approval("alice").Obj())).To(Succeed())
	s.Expect(s.creates("alice", s.approval("bob").Named("twice").Obj())).To(MatchError(ContainSubstring("must be your own name: alice")), "a second time, as another")
}

// What a backup tool restores are not its own decisions, whatever it may do.
func TestABackupDoesNotRestoreDecisions(t *testing.T) {
	s := open(t, "approvals").inForce()
	const tool = "system:serviceaccount:velero:velero"
	s.allow(user(tool), "", "*")
	restored := s.approval("bob").Because("restored").Obj()
	restored.CreationTimestamp, restored.UID = metav1.NewTime(fixture.Noon), "of-the-backup"
	s.Expect(s.creates(tool, restored)).To(MatchError(ContainSubstring("spec.by.username must be your own name: " + tool)))
}

func TestSigningWritesTheNameOfWhoeverAsks(t *testing.T) {
	s := open(t, "approvals", "sign").inForce()
	unsigned := func() client.Object {
		o := raw(s.t, here(s, s.approval("nobody").Obj()))
		delete(o.Object["spec"].(map[string]any), "by")
		return o
	}
	s.Eventually(func(g Gomega) {
		o := unsigned()
		g.Expect(s.as("alice").Create(t.Context(), o, client.DryRunAll)).To(Succeed())
		g.Expect(byOf(o)).To(Equal("alice"))
	}).Should(Succeed())
}

func TestWithoutSigningAnApprovalNeedsAName(t *testing.T) {
	s := open(t, "approvals").inForce()
	o := raw(t, here(s, s.approval("nobody").Obj()))
	delete(o.Object["spec"].(map[string]any), "by")
	s.Eventually(func() error { // the policy of another test may still be known
		return s.as("alice").Create(t.Context(), o.DeepCopy(), client.DryRunAll)
	}).Should(MatchError(ContainSubstring("spec.by: Required value")))
}

func TestRolesAreVerbsOnTheRollout(t *testing.T) {
	s := open(t, "approvals").inForce()
	s.allow(user("carol"), "", "get")
	s.allow(user("dave"), "other", "approve")
	s.allow(rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "security"}, "", "approve:security")
	for name, c := range map[string]struct {
		by     string
		groups []string
		a      *fixture.ApprovalBuilder
		denied string
	}{
		"without the verb":        {"carol", nil, s.approval("carol"), "carol may not approve rollouts/shop"},
		"on another Rollout":      {"dave", nil, s.approval("dave"), "dave may not approve rollouts/shop"},
		"in a role one lacks":     {"alice", nil, s.approval("alice").As("security"), "alice may not approve:security rollouts/shop"},
		"without a role":          {"erin", []string{"security"}, s.approval("erin"), "erin may not approve rollouts/shop"},
		"in the role of a group":  {"erin", []string{"security"}, s.approval("erin").As("security"), ""},
		"override by an approver": {"alice", nil, s.approval("alice").Override(time.Hour, "payments are down"), "alice may not override rollouts/shop"},
	} {
		t.Run(name, func(t *testing.T) {
			err := s.creates(c.by, c.a.Named("a").Obj(), c.groups...)
			if c.denied == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.denied)))
		})
	}
}

func TestADecisionCannotBeChanged(t *testing.T) {
	s := open(t, "approvals").inForce()
	s.allow(user("alice"), "", "approve")
	s.Expect(s.creates("alice", s.approval("alice").Obj())).To(Succeed())
	change := func(patch string) error {
		return s.as("alice").Patch(t.Context(), here(s, s.approval("alice").Obj()), client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
	s.Eventually(func() error { return change(`{"metadata":{"labels":{"seen":"true"}}}`) }).Should(Succeed())
	s.Expect(change(`{"spec":{"version":"2.0.0"}}`)).To(MatchError(ContainSubstring("a decision cannot be changed")))
	s.Expect(change(`{"spec":{"by":{"username":"bob"}}}`)).To(MatchError(ContainSubstring("a decision cannot be changed")))
}

func TestOnlyItsAuthorOrWhoMayOverrideWithdrawsARejection(t *testing.T) {
	s := open(t, "approvals").inForce()
	s.bind("release-override-role", "oscar")
	reject := func(name string) *v1alpha1.RolloutApproval {
		a := s.approval("bob").Named(name).Reject().Obj()
		s.Expect(s.creates("bob", a)).To(Succeed())
		return a
	}
	first, second, third := reject("first"), reject("second"), reject("third")
	const refused = "only its author, or who may override, withdraws a rejection"
	s.Eventually(func() error { return s.as("alice").Delete(t.Context(), first.DeepCopy(), client.DryRunAll) }).Should(MatchError(ContainSubstring(refused)))
	s.Expect(s.as("bob").Delete(t.Context(), first)).To(Succeed())
	s.Expect(s.as("oscar").Delete(t.Context(), second)).To(Succeed())
	collector := s.as("system:serviceaccount:kube-system:generic-garbage-collector", "system:masters")
	s.Expect(collector.Delete(t.Context(), third)).To(Succeed())
	s.Expect(s.creates("alice", s.approval("alice").Obj())).To(Succeed())
	s.Expect(s.as("bob").Delete(t.Context(), here(s, s.approval("alice").Obj()))).To(Succeed(), "an approval protects nothing")
}

func TestNobodyChoosesUnderAnotherName(t *testing.T) {
	s := open(t, "approvals", "deploy-user").inForce()
	s.bind("rollout-editor-role", "alice")
	s.bind("rollout-editor-role", "portal")
	s.allow(user("portal"), "", "attribute")
	rollout := here(s, fixture.MakeRollout("shop").Obj())
	s.Expect(everything.Create(t.Context(), rollout)).To(Succeed())
	patch := func(by, text string, options ...client.PatchOption) error {
		return s.as(by).Patch(t.Context(), rollout.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text)), options...)
	}
	const refused = "deploy-user must be your own name, or absent" // asked as a dry run: what is stored before that is no choice after
	name := func(user, spec string) string {
		return `{"metadata":{"annotations":{"rollout.kuberik.com/deploy-user":` + user + `}},"spec":` + spec + `}`
	}
	s.Eventually(func() error { return patch("alice", name(`"bob"`, `{"wantedVersion":"1.0.0"}`), client.DryRunAll) }).Should(MatchError(ContainSubstring(refused)))
	s.Expect(patch("alice", name(`"bob"`, `{}`))).To(MatchError(ContainSubstring(refused)), "before a choice")
	s.Expect(patch("alice", name(`"alice"`, `{"wantedVersion":"1.0.0"}`))).To(Succeed())
	s.Expect(patch("alice", name(`null`, `{"wantedVersion":"1.1.0"}`))).To(Succeed())
	s.Expect(patch("portal", name(`"bob"`, `{"wantedVersion":"1.2.0"}`))).To(Succeed(), "a front end that may")
	s.Expect(patch("alice", `{"metadata":{"annotations":{"rollout.kuberik.com/force-deploy":"1.3.0"}}}`)).To(MatchError(ContainSubstring(refused)), "with the name that is left")
	s.Expect(patch("alice", `{"metadata":{"labels":{"a":"b"}}}`)).To(Succeed(), "what is no choice")
}

func (s *testEnv) policies() *Policies {
	return &Policies{Reader: everything, Now: time.Now}
}

func TestApprovalsCountOnlyWhileThePoliciesAreThoseOfThisVersion(t *testing.T) {
	s := open(t, "approvals", "deploy-user")
	p := s.policies()
	installed := p.Identity(t.Context())
	s.Expect(installed.Problem).To(BeNil())
	s.Expect(installed.Choosers).To(BeTrue())
	s.Expect(installed.Since).To(BeTemporally("~", time.Now().Add(takesEffect), 20*time.Second))
	s.Expect((&Policies{Reader: everything, Now: time.Now}).Identity(t.Context())).To(Equal(installed), "after a restart")

	for name, c := range map[string]struct {
		o      client.Object
		patch  string
		differ string
	}{
		"Audit":             {binding(Approvals), `{"spec":{"validationActions":["Audit"]}}`, "Binding rollout-controller-approvals is not that of this version, its spec.validationActions"},
		"a selector":        {binding(Approvals), `{"spec":{"matchResources":{"namespaceSelector":{"matchLabels":{"a":"b"}}}}}`, "spec.matchResources"},
		"another policy":    {binding(Withdrawals), `{"spec":{"policyName":"rollout-controller-approvals"}}`, "spec.policyName"},
		"a condition":       {policy(Approvals), `{"spec":{"matchConditions":[{"name":"never","expression":"false"}]}}`, "spec.matchConditions"},
		"another check":     {policy(Withdrawals), `{"spec":{"validations":[{"expression":"true"}]}}`, "spec.validations"},
		"that fails open":   {policy(Approvals), `{"spec":{"failurePolicy":"Ignore"}}`, "spec.failurePolicy"},
		"excluded requests": {policy(Approvals), `{"spec":{"matchConstraints":{"excludeResourceRules":[{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":["*"]}]}}}`, "spec.matchConstraints"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := c.o.DeepCopyObject().(client.Object)
			g.Expect(everything.Get(t.Context(), client.ObjectKeyFromObject(c.o), before)).To(Succeed())
			g.Expect(everything.Patch(t.Context(), c.o, client.RawPatch("application/merge-patch+json", []byte(c.patch)), client.FieldOwner("editor"))).To(Succeed())
			changed := p.Identity(t.Context())
			g.Expect(changed.Problem).To(HaveValue(And(HaveField("Reason", v1alpha1.IdentityNotVerifiedReason), HaveField("Message", ContainSubstring(c.differ)))))

			at := time.Now().Truncate(time.Second)
			g.Expect(everything.Get(t.Context(), client.ObjectKeyFromObject(c.o), c.o)).To(Succeed())
			before.SetResourceVersion(c.o.GetResourceVersion())
			before.SetManagedFields(c.o.GetManagedFields())
			g.Expect(everything.Update(t.Context(), before, client.FieldOwner("editor"))).To(Succeed())
			restored := p.Identity(t.Context())
			g.Expect(restored.Problem).To(BeNil())
			g.Expect(restored.Since).To(BeTemporally(">=", at.Add(takesEffect)), "what was made in between does not count")
		})
	}
}

// A controller that no gate has asked for a while looks late: the policies are in force since
// they were created, as they are for everybody else.
func TestPoliciesAreInForceSinceTheirCreation(t *testing.T) {
	late := time.Now()
	p := &Policies{Reader: everything, Now: func() time.Time { return late }}
	NewWithT(t).Expect(p.Identity(t.Context()).Problem).NotTo(BeNil(), "nothing is installed")
	s := open(t, "approvals", "deploy-user")
	late = late.Add(time.Hour)
	s.Expect(p.Identity(t.Context())).To(Equal(s.policies().Identity(t.Context())))
	s.Expect(everything.Delete(t.Context(), binding(Approvals))).To(Succeed())
	s.Expect(p.Identity(t.Context()).Problem).NotTo(BeNil())
}

// A selector that is added and removed again is seen by a process that did not run then.
func TestASelectorThatIsGoneLeavesATrace(t *testing.T) {
	s := open(t, "approvals")
	time.Sleep(1100 * time.Millisecond) // times have seconds
	for _, selector := range []string{`{"matchLabels":{"a":"b"}}`, `{"matchLabels":null}`} {
		s.Expect(everything.Patch(t.Context(), binding(Approvals), client.RawPatch("application/merge-patch+json",
			[]byte(`{"spec":{"matchResources":{"namespaceSelector":`+selector+`}}}`)), client.FieldOwner("editor"))).To(Succeed())
	}
	o := binding(Approvals)
	s.Expect(everything.Get(t.Context(), client.ObjectKeyFromObject(o), o)).To(Succeed())
	s.Expect(o.Generation).To(Equal(int64(3)))
	identity := s.policies().Identity(t.Context())
	s.Expect(identity.Problem).To(BeNil())
	s.Expect(identity.Since).To(BeTemporally(">", o.CreationTimestamp.Add(takesEffect)))
}

func TestApprovalsDoNotCountWithoutAPolicy(t *testing.T) {
	s := open(t, "approvals")
	p := s.policies()
	s.Expect(p.Identity(t.Context())).To(And(HaveField("Problem", BeNil()), HaveField("Choosers", false)))
	for _, o := range []client.Object{policy(Approvals), binding(Approvals), policy(Withdrawals), binding(Withdrawals)} {
		s.Expect(everything.Delete(t.Context(), o)).To(Succeed())
		s.Expect(p.Identity(t.Context()).Problem).To(HaveValue(HaveField("Message", ContainSubstring(o.GetName()+" is missing: install the component approvals"))))
		s.install("approvals")
		s.Expect(p.Identity(t.Context()).Problem).To(BeNil())
	}
}

// Whoever clears managedFields takes away when the last change was.
func TestAPolicyWithoutATimeOfItsLastChangeVouchesForNothing(t *testing.T) {
	s := open(t, "approvals")
	for _, patch := range []string{`{"spec":{"failurePolicy":"Ignore"}}`, `{"metadata":{"managedFields":[{}]}}`} {
		s.Expect(everything.Patch(t.Context(), policy(Approvals), client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
	}
	o := policy(Approvals)
	s.Expect(everything.Get(t.Context(), client.ObjectKeyFromObject(o), o)).To(Succeed())
	o.ManagedFields = nil
	s.Expect(lastChange(o).IsZero()).To(BeTrue())
	o.Generation = 1
	s.Expect(lastChange(o)).To(Equal(o.CreationTimestamp.Time))
}

func TestDashboardCannotChooseWhatHasFailed(t *testing.T) {
	s := open(t, "dashboard-guard")
	rollout := here(s, fixture.MakeRollout("shop").Obj())
	s.Expect(everything.Create(t.Context(), rollout)).To(Succeed())
	entry := func(tag string, state v1alpha1.BakeStatus) v1alpha1.DeploymentHistoryEntry {
		return v1alpha1.DeploymentHistoryEntry{Version: v1alpha1.VersionInfo{Tag: tag}, Timestamp: metav1.Now(), BakeStatus: &state}
	}
	rollout.Status.History = []v1alpha1.DeploymentHistoryEntry{entry("1.0.0", v1alpha1.BakeSucceeded), entry("1.1.0", v1alpha1.BakeFailed), entry("1.0.0", v1alpha1.BakeSucceeded)}
	s.Expect(everything.Status().Update(t.Context(), rollout)).To(Succeed())
	write := func(by, text string, options ...client.PatchOption) error {
		return everything.Patch(t.Context(), here(s, fixture.MakeRollout("shop").Obj()), client.RawPatch("application/merge-patch+json", []byte(text)), append(options, client.FieldOwner(by))...)
	}
	const dashboard, pin, refused = "rollout-dashboard", `{"spec":{"wantedVersion":"1.1.0"}}`, "this version has failed here"
	s.Eventually(func() error { return write(dashboard, pin, client.DryRunAll) }).Should(MatchError(ContainSubstring(refused)))
	s.Expect(write(dashboard, `{"metadata":{"annotations":{"rollout.kuberik.com/force-deploy":"1.1.0"}}}`)).To(MatchError(ContainSubstring(refused)))
	s.Expect(write(dashboard, `{"spec":{"wantedVersion":"1.0.0"}}`)).To(Succeed())
	s.Expect(write("kubectl-edit", pin)).To(Succeed())
	s.Expect(write(dashboard, `{"metadata":{"labels":{"a":"b"}}}`)).To(Succeed(), "a pin that exists")
	s.Expect(write(dashboard, `{"spec":{"wantedVersion":null}}`)).To(Succeed())
	s.Expect(write(dashboard, `{"metadata":{"annotations":{"rollout.kuberik.com/unblock-failed":"true"}},"spec":{"wantedVersion":"1.1.0"}}`)).To(Succeed())
}

func policy(name string) *admissionv1.ValidatingAdmissionPolicy {
	return &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func binding(name string) *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
