// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/identity"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// offer makes the ImagePolicy name a release with its digest.
func (s *testEnv) offer(tag string) {
	s.ChangeStatus(fixture.MakePolicy("shop").Obj(), func(o client.Object) {
		setLatest(o, tag)
		o.(*imagev1.ImagePolicy).Status.LatestRef.Digest = digestOf(tag)
	})
}

// approve adds an approval of the content that the policy shows.
func (s *testEnv) approve(user, tag string) {
	s.Add(fixture.MakeApproval(user, "shop", tag).Digest(digestOf(tag)).Obj())
}

// running is a Rollout that has deployed 1.0.0. Its clock is that of the API server, which stamps
// what people say.
func running(s *testEnv) *testEnv {
	s.reflects(digestOf("1.0.0"))
	s.deploy("shop")
	s.Pass(time.Since(s.Clock.Now()) + time.Second)
	return s
}

// stillShowing is a cache that has not seen yet that an approval was deleted.
func stillShowing(deleted *v1alpha1.RolloutApproval) func(client.WithWatch) client.WithWatch {
	return func(cached client.WithWatch) client.WithWatch {
		return interceptor.NewClient(cached, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				err := c.List(ctx, list, opts...)
				if approvals, ok := list.(*v1alpha1.RolloutApprovalList); ok {
					approvals.Items = append(approvals.Items, *deleted)
				}
				return err
			},
		})
	}
}

func TestWhatTheCacheDoesNotShowYetHoldsAPromotion(t *testing.T) {
	for name, test := range map[string]struct {
		arrange func(s *testEnv)
		reason  string
		message string
	}{
		"a rejection": {func(s *testEnv) {
			s.approve("bob", "1.1.0")
			s.Add(fixture.MakeApproval("eve", "shop", "1.1.0").Digest(digestOf("1.1.0")).Reject().Because("leaks").Obj())
			s.reads = withoutRejections
		}, v1alpha1.ApprovalRejectedReason, "RolloutGate qa: rejected by eve (leaks)"},
		"that an approval was deleted": {func(s *testEnv) {
			approval := fixture.MakeApproval("bob", "shop", "1.1.0").Digest(digestOf("1.1.0")).Obj()
			s.Add(approval)
			s.Expect(s.Delete(s.Ctx, approval.DeepCopy())).To(Succeed())
			s.reads = stillShowing(approval)
		}, v1alpha1.ApprovalRequiredReason, "RolloutGate qa: 0 of 1 approvals"},
	} {
		t.Run(name, func(t *testing.T) {
			s := running(open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...))
			s.Add(fixture.MakeGate("qa", "shop").Asking(fixture.AskFor(1)).Obj())
			test.arrange(s)
			s.restart()
			s.offer("1.1.0")
			s.rest("shop")
			s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
			s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"))
			held := s.condition("shop", v1alpha1.GatesPassingCondition)
			s.Expect([]string{held.Reason, held.Message}).To(HaveExactElements(Equal(test.reason), ContainSubstring(test.message)))
		})
	}
}

// A tenant may write labels of its Rollout, and gates, but not what is outside of its namespace.
func TestTenantThatUnlabelsItsRolloutNeedsTheApprovalsOfTheCluster(t *testing.T) {
	s := running(openAlone(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...))
	s.LabelNamespace("tier", s.Namespace)
	gate := fixture.MakeClusterGate("prod-" + s.Namespace).In(map[string]string{"tier": s.Namespace}).Asking(fixture.AskFor(1)).Obj()
	s.Expect(s.Create(s.Ctx, gate)).To(Succeed())
	t.Cleanup(func() { _ = s.Delete(context.WithoutCancel(s.Ctx), gate) })
	s.Relabel("shop", map[string]string{"team": "a"})
	s.offer("1.1.0")
	for _, step := range []struct {
		name  string
		write func()
	}{
		{"with a label", func() {}},
		{"without one", func() { s.Relabel("shop", nil) }},
		{"with another one", func() { s.Relabel("shop", map[string]string{"tier": "dev"}) }},
		{"bypassing gates", func() {
			s.Change(s.rollout("shop"), func(o client.Object) { o.SetAnnotations(map[string]string{v1alpha1.BypassGatesAnnotation: "1.1.0"}) })
		}},
	} {
		step.write()
		s.rest("shop")
		s.Expect(s.history("shop")).To(HaveLen(1), step.name)
		s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition)).To(And(HaveField("Reason", v1alpha1.ApprovalRequiredReason),
			HaveField("Message", ContainSubstring("ClusterRolloutGate "+gate.Name+": 0 of "))), step.name)
	}
	s.approve("bob", "1.1.0")
	s.approve("eve", "1.1.0") // nobody knows who bypasses
	s.rest("shop")
	s.Expect(s.rollout("shop").Current()).To(And(HaveField("Version.Tag", "1.1.0"), HaveField("Approval.Gates", []string{"cluster/" + gate.Name})))
}

func TestApprovalsOfARolloutThatIsCreatedAgainDoNotCount(t *testing.T) {
	s := running(open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...))
	s.Add(fixture.MakeGate("qa", "shop").Asking(fixture.AskFor(1)).Obj(),
		fixture.MakeApproval("bob", "shop", "1.1.0").Digest(digestOf("1.1.0")).OfRollout(s.rollout("shop").UID).Obj())
	s.Remove(&v1alpha1.Rollout{}, "shop")
	s.Add(fixture.MakeRollout("shop").Obj())
	s.deploy("shop")
	s.offer("1.1.0")
	s.rest("shop")
	s.Expect(s.history("shop")[0].Tag).To(Equal("1.0.0"))
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition).Message).To(ContainSubstring("RolloutGate qa: 0 of 1 approvals"))
}

// The history says which decisions were used, and it may get lost.
func TestDecisionIsUsedOnceAlthoughTheHistoryIsLost(t *testing.T) {
	s := approvedUpgrade(t)
	s.Change(fixture.MakeGate("qa", "shop").Obj(), func(o client.Object) {
		o.(*v1alpha1.RolloutGate).Spec.Approvals.SelfApproval = v1alpha1.SelfApprovalAllow // one approval is enough for a pin
	})
	s.pinTo("1.0.0")
	s.deploy("shop")
	s.loseStatus()
	s.pinTo("1.1.0")
	s.deploy("shop")
	s.Expect(s.history("shop")).To(HaveExactElements(HaveField("Tag", "1.0.0")), "what runs is adopted")
	s.Expect(s.condition("shop", v1alpha1.ReconcilingCondition)).To(And(HaveField("Reason", v1alpha1.ApprovalRequiredReason),
		HaveField("Message", ContainSubstring("RolloutGate qa: 0 of 1 approvals"))))
}

// TestApprovalsCostNothingAtRest runs Rollouts that wait for the second of two approvals.
func TestApprovalsCostNothingAtRest(t *testing.T) {
	const many = 250
	s := openAlone(t, failedTogether(0)...)
	good, next := fixture.MakeRelease("1.0.0").Digest(digestOf("1.0.0")).Obj(), fixture.MakeRelease("1.1.0").Digest(digestOf("1.1.0")).Obj()
	var said []client.Object
	for i := range many {
		name := fmt.Sprintf("shop-%03d", i)
		rollout := fixture.MakeRollout(name).Releases(good, next).History(fixture.MakeEntry("1.0.0").Version(good).Succeeded()).Obj()
		rollout.Spec.ReleasesImagePolicy.Name = "shop"
		s.Add(rollout)
		said = append(said, fixture.MakeGate(name, name).Asking(fixture.AskFor(2)).Obj(), fixture.MakeApproval("bob", name, "1.1.0").Digest(*next.Digest).Obj())
	}
	s.addAll(said)

	requests, user := &fixture.Requests{}, testPlane.RESTConfig()
	user.Wrap(requests.Wrap)
	mgr, rollouts := s.setUp(t, user, s.Events, nil)
	rollouts.Identity = identity.Trusted
	s.Expect(gather.IndexApprovals(s.Ctx, mgr.GetFieldIndexer())).To(Succeed())
	s.Expect(rollouts.WatchApprovals()).To(Succeed())
	s.Expect(rollouts.WatchHelmReleases(s.Ctx)).To(Succeed())
	s.Run(t, mgr)
	s.Eventually(s.unsettled).Should(BeEmpty())
	s.Expect(requests.Count("PATCH")).To(Equal(many), "the status of each Rollout")
	rest := requests.Count("")
	s.Consistently(func() int { return requests.Count("") }, 3*time.Second).Should(Equal(rest))

	lists := func() int {
		return requests.Count("/rolloutapprovals?") - requests.CountBoth("/rolloutapprovals?", "watch=")
	}
	before := lists()
	s.Add(fixture.MakeApproval("eve", "shop-007", "1.1.0").Digest(*next.Digest).Obj())
	s.Eventually(func() string { return s.history("shop-007")[0].Tag }).Should(Equal("1.1.0"))
	s.Expect(lists()).To(Equal(before+1), "a promotion lists what was said of its version")
}

// What people say of other Rollouts and of other versions does not count, however much it is.
func TestTenThousandApprovalsInOneNamespace(t *testing.T) {
	s := running(open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...))
	s.Add(fixture.MakeGate("qa", "shop").Asking(fixture.AskFor(2)).Obj())
	var flood []client.Object
	for i := range 10_000 {
		rollout, version := []string{"shop", "cart"}[i%2], fmt.Sprintf("0.%d.0", i%50)
		flood = append(flood, fixture.MakeApproval(fmt.Sprint("bot-", i), rollout, version).Named(fmt.Sprint("flood-", i)).Obj())
	}
	s.addAll(flood)
	s.approve("bob", "1.1.0")
	s.offer("1.1.0")
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition).Message).To(ContainSubstring("RolloutGate qa: 1 of 2 approvals (bob)"))
	s.approve("eve", "1.1.0")
	s.rest("shop")
	s.Expect(s.history("shop")[0].Tag).To(Equal("1.1.0"))

	flood = nil
	for i := range 257 {
		flood = append(flood, fixture.MakeApproval(fmt.Sprint("bot-", i), "shop", "1.2.0").Digest(digestOf("1.2.0")).Named(fmt.Sprint("more-", i)).Obj())
	}
	s.addAll(flood)
	s.offer("1.2.0")
	s.rest("shop")
	s.Expect(s.history("shop")[0].Tag).To(Equal("1.1.0"))
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition)).To(And(HaveField("Reason", v1alpha1.ApprovalListFailedReason),
		HaveField("Message", ContainSubstring("there are more than 256 RolloutApprovals of 1.2.0: delete those that are not needed"))))
}
