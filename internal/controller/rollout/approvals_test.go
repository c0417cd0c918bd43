// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// withoutRejections is a cache that has not seen any rejection yet.
func withoutRejections(cached client.WithWatch) client.WithWatch {
	return interceptor.NewClient(cached, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			if approvals, ok := list.(*v1alpha1.RolloutApprovalList); ok {
				var kept []v1alpha1.RolloutApproval
				for _, a := range approvals.Items {
					if a.Spec.Decision != v1alpha1.DecisionReject {
						kept = append(kept, a)
					}
				}
				approvals.Items = kept
			}
			return err
		},
	})
}

func decisionsOf(s gather.Snapshot) map[string]v1alpha1.Decision {
	all := map[string]v1alpha1.Decision{}
	for _, a := range s.Approvals.Given {
		all[a.Name] = a.Spec.Decision
	}
	return all
}

func TestApprovalsAreReadOnlyIfAGateAsks(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.Add(fixture.MakeApproval("bob", "shop", "1.1.0").Obj(), fixture.MakeApproval("bob", "other", "1.1.0").Obj(),
		fixture.MakeGate("manual", "shop").Obj())
	gathered := s.reconciler.gather(s.Ctx, s.rollout("shop"))
	s.Expect(gathered.Approvals.Given).To(BeEmpty())

	s.Change(fixture.MakeGate("manual", "shop").Obj(), func(o client.Object) {
		o.(*v1alpha1.RolloutGate).Spec.Approvals = fixture.AskFor(1)
	})
	gathered = s.reconciler.gather(s.Ctx, s.rollout("shop"))
	s.Expect(decisionsOf(gathered)).To(Equal(map[string]v1alpha1.Decision{"shop-bob": v1alpha1.DecisionApprove}))

	s.reconciler.late.approvals.Store(false)
	gathered = s.reconciler.gather(s.Ctx, s.rollout("shop"))
	s.Expect(gathered.Approvals.Problem).To(HaveField("Reason", v1alpha1.ApprovalListFailedReason))
}

// The selection of the API server is tested too: 1.1.0 is not 1.2.0.
func TestConfirmApprovalsSeesARejectionBeforeTheCache(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.reads = withoutRejections
	s.restart()
	s.Add(fixture.MakeGate("manual", "shop").Asking(fixture.AskFor(1)).Obj(),
		fixture.MakeApproval("bob", "shop", "1.1.0").Obj(), fixture.MakeApproval("eve", "shop", "1.1.0").Reject().Obj(),
		fixture.MakeApproval("eve", "shop", "1.2.0").Named("later").Reject().Obj())
	gathered := s.reconciler.gather(s.Ctx, s.rollout("shop"))
	s.Expect(decisionsOf(gathered)).To(Equal(map[string]v1alpha1.Decision{"shop-bob": v1alpha1.DecisionApprove}))

	s.Expect(s.reconciler.gatherer().ConfirmApprovals(s.Ctx, &gathered, "1.1.0")).To(Succeed())
	s.Expect(decisionsOf(gathered)).To(Equal(map[string]v1alpha1.Decision{
		"shop-bob": v1alpha1.DecisionApprove, "shop-eve": v1alpha1.DecisionReject}))
}

func TestTooManyApprovalsOfOneVersionCountForNothing(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.Add(fixture.MakeGate("manual", "shop").Asking(fixture.AskFor(1)).Obj())
	for i := range 257 {
		s.Add(fixture.MakeApproval("bot", "shop", "1.1.0").Named("bot-" + string(rune('a'+i%26)) + string(rune('a'+i/26))).Obj())
	}
	gathered := s.reconciler.gather(s.Ctx, s.rollout("shop"))
	s.Expect(gathered.Approvals.Given).To(BeEmpty())
	s.Expect(gathered.Approvals.Problem).To(HaveField("Message",
		"there are more than 256 RolloutApprovals of 1.1.0: delete those that are not needed"))
}

func TestClusterRolloutGateSelectsByNamespaceWhateverTheRolloutIsLabelled(t *testing.T) {
	s := openAlone(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.LabelNamespace("tier", "prod")
	gates := []client.Object{
		fixture.MakeClusterGate("prod-" + s.Namespace).In(map[string]string{"tier": "prod"}).Obj(),
		fixture.MakeClusterGate("dev-" + s.Namespace).In(map[string]string{"tier": "dev"}).Obj(),
		fixture.MakeClusterGate("team-" + s.Namespace).In(map[string]string{"tier": "prod"}).Selecting(map[string]string{"team": "a"}).Obj(),
	}
	for _, gate := range gates {
		s.Expect(s.Create(s.Ctx, gate)).To(Succeed())
		t.Cleanup(func() { _ = s.Delete(context.WithoutCancel(s.Ctx), gate) })
	}
	selecting := func() (names []string) {
		for _, gate := range s.reconciler.gather(s.Ctx, s.rollout("shop")).Gates.Cluster {
			names = append(names, gate.Name)
		}
		return names
	}
	s.Relabel("shop", map[string]string{"team": "a"})
	s.Expect(selecting()).To(Equal([]string{"prod-" + s.Namespace, "team-" + s.Namespace}))
	s.Relabel("shop", nil)
	s.Expect(selecting()).To(Equal([]string{"prod-" + s.Namespace}), "a tenant may change the labels of a Rollout, and not those of the namespace")
}

// The test's clock is moved to the time of the API server, which stamps the decisions.
func TestApprovalsThatEndedLongAgoAreDeletedAfterAPromotion(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.reconciler.ApprovalRetention = 24 * time.Hour
	s.Add(fixture.MakeGate("manual", "shop").Asking(fixture.AskFor(1)).Obj(),
		fixture.MakeApproval("bob", "shop", "1.1.0").Obj(), fixture.MakeApproval("mal", "shop", "1.0.5").Reject().Obj(),
		fixture.MakeApproval("eve", "shop", "1.0.5").Override(time.Minute, "payments down").Obj(),
		fixture.MakeApproval("eve", "cart", "1.0.5").Override(time.Minute, "payments down").Obj())
	s.Pass(time.Since(s.Clock.Now()) + 25*time.Hour)
	s.rest("shop")
	s.Expect(s.writesTo("RolloutApproval")).To(BeEmpty(), "without a promotion, nothing is deleted")

	s.ChangeStatus(fixture.MakePolicy("shop").Obj(), func(o client.Object) {
		setLatest(o, "1.1.0")
		o.(*imagev1.ImagePolicy).Status.LatestRef.Digest = fixture.DigestOf("1.1.0")
	})
	s.rest("shop")
	s.Expect(s.history("shop")[0].Tag).To(Equal("1.1.0"))
	s.Expect(s.writesTo("RolloutApproval")).To(Equal([]string{"delete RolloutApproval shop-eve"}))
}

// A pin that waits is asked for once, and so is its release alone.
func TestAlertsAskForTheApprovalsOfAPin(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.Pass(time.Since(s.Clock.Now()) + time.Minute)
	s.Add(fixture.MakeGate("qa", "shop").Asking(fixture.AskFor(2)).Obj())
	offer := func(tag string) {
		s.ChangeStatus(fixture.MakePolicy("shop").Obj(), func(o client.Object) {
			setLatest(o, tag)
			o.(*imagev1.ImagePolicy).Status.LatestRef.Digest = fixture.DigestOf(tag)
		})
		s.rest("shop")
	}
	s.rest("shop")
	s.notifications.Take()
	for _, step := range []struct {
		name    string
		happen  func()
		alerts  []string
		kstatus status.Status
	}{
		{"a candidate", func() { offer("1.1.0") }, []string{
			"info ReleaseDetected 1.1.0: release 1.1.0 was detected",
			"info ApprovalRequired 1.1.0: 1.1.0: RolloutGate qa: 0 of 2 approvals",
		}, status.CurrentStatus},
		{"a pin", func() { s.pinTo("1.1.0") }, []string{
			"info ApprovalRequired 1.1.0: 1.1.0 waits: RolloutGate qa: 0 of 3 approvals",
		}, status.InProgressStatus},
		{"one has approved", func() { s.Add(fixture.MakeApproval("zoe", "shop", "1.1.0").Obj()) }, nil, status.InProgressStatus},
		{"another candidate", func() { offer("1.2.0") }, []string{
			"info ReleaseDetected 1.2.0: release 1.2.0 was detected; it waits: spec.wantedVersion pins 1.1.0; remove it to resume automatic promotions",
		}, status.InProgressStatus},
		{"all have approved", func() {
			s.Add(fixture.MakeApproval("eve", "shop", "1.1.0").Obj(), fixture.MakeApproval("ann", "shop", "1.1.0").Obj())
		}, []string{
			"info Approved 1.1.0: 1.1.0 was approved by ann, eve, zoe",
			"info Pinned 1.1.0: promoted 1.1.0 (pinned manually in spec.wantedVersion); waiting for Flux to apply 1.1.0 to 2 targets",
		}, status.InProgressStatus},
	} {
		step.happen()
		s.rest("shop")
		s.Expect(heard(s.notifications.Take(), "Rollout")).To(Equal(step.alerts), step.name)
		s.Expect(s.kstatus("shop")).To(Equal(step.kstatus), step.name)
	}
}

// approvedUpgrade is a Rollout that has gone to 1.1.0, which bob has approved. Its clock is that
// of the API server, which stamps the decisions.
func approvedUpgrade(t *testing.T) *testEnv {
	t.Helper()
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.reflects(digestOf("1.0.0"))
	s.deploy("shop")
	s.Add(fixture.MakeGate("qa", "shop").Asking(fixture.AskFor(1)).Obj(), fixture.MakeApproval("bob", "shop", "1.1.0").Digest(digestOf("1.1.0")).Obj())
	s.Pass(time.Since(s.Clock.Now()) + time.Second)
	s.ChangeStatus(fixture.MakePolicy("shop").Obj(), func(o client.Object) {
		setLatest(o, "1.1.0")
		o.(*imagev1.ImagePolicy).Status.LatestRef.Digest = digestOf("1.1.0")
	})
	s.deploy("shop")
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}))
	s.Expect(s.rollout("shop").Current().Approval.Outcome).To(Equal(v1alpha1.OutcomeApproved))
	s.notifications.Take()
	return s
}

func TestContentThatIsPushedAfterTheApprovalRunsUnapproved(t *testing.T) {
	s := approvedUpgrade(t)
	other := fixture.DigestOf("other")
	s.pushedAgain = map[string]string{"1.1.0": other}
	s.fluxPulls()
	s.deploy("shop")
	entry := s.rollout("shop").Current()
	s.Expect([]any{*entry.ID, *entry.Version.Digest, entry.Approval.Outcome}).To(Equal([]any{int64(3), other, v1alpha1.OutcomeMissing}))
	s.Expect(s.condition("shop", v1alpha1.RunsUnapprovedCondition).Status).To(Equal(metav1.ConditionTrue))
	s.Expect(heard(s.notifications.Take(), "Rollout")).To(ContainElement(HavePrefix("error RunsUnapproved 1.1.0: ")))

	time.Sleep(2 * time.Second) // a decision of the same second would be used
	s.Add(fixture.MakeApproval("eve", "shop", "1.1.0").Digest(other).Obj())
	s.Pass(3 * time.Second)
	s.rest("shop")
	approval := s.rollout("shop").Current().Approval
	s.Expect([]any{approval.Outcome, approval.By[0].Username}).To(Equal([]any{v1alpha1.OutcomeApproved, "eve"}))
	s.Expect(apimeta.FindStatusCondition(s.rollout("shop").Status.Conditions, v1alpha1.RunsUnapprovedCondition)).To(BeNil())
}

// An older client that updates the status drops fields that it does not know.
func TestDecisionIsUsedOnceAlthoughAClientErasesWhoGaveIt(t *testing.T) {
	s := approvedUpgrade(t)
	s.ChangeStatus(s.rollout("shop"), func(o client.Object) { o.(*v1alpha1.Rollout).Status.History[0].Approval = nil })
	s.pinTo("1.0.0")
	s.deploy("shop")
	s.Expect(s.history("shop")[0].Tag).To(Equal("1.0.0"), "to go back needs no approval")
	s.pin("shop", nil)
	s.rest("shop")
	s.Expect(s.history("shop")[0].Tag).To(Equal("1.0.0"))
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition).Reason).To(Equal(v1alpha1.ApprovalRequiredReason))
}

func TestTransitionsNameWhoLetAPromotionGo(t *testing.T) {
	by := []v1alpha1.RecordedApproval{{Username: "bob", Reason: "CHG-1"}, {Username: "eve", Role: "security"}}
	for outcome, want := range map[v1alpha1.ApprovalOutcome][]string{
		v1alpha1.OutcomeApproved: {"Normal info Approved by bob, eve at cluster/prod: 1.1.0 was approved by bob (CHG-1), eve as security"},
		v1alpha1.OutcomeOverridden: {"Warning error Overridden by bob, eve at cluster/prod: " +
			"1.1.0 is promoted without the approvals that are missing, by bob (CHG-1), eve as security"},
		v1alpha1.OutcomeNotNeeded: nil, v1alpha1.OutcomeMissing: nil, "": nil,
	} {
		t.Run(string(outcome), func(t *testing.T) {
			g := NewWithT(t)
			rollout := fixture.MakeRollout("shop").History(fixture.MakeEntry("1.1.0")).Obj()
			if outcome != "" {
				rollout.Status.History[0].Approval = &v1alpha1.ApprovalRecord{Outcome: outcome, Gates: []string{"cluster/prod"}, By: by}
			}
			var got []string
			for _, e := range approvedBy(rollout) {
				got = append(got, e.eventType+" "+e.severity+" "+e.reason+" by "+e.metadata[metaActor]+" at "+e.metadata[metaGate]+": "+e.message)
			}
			g.Expect(got).To(Equal(want))
		})
	}
}

// What one person says does not hide the others, and is no line of its own.
func TestTransitionsNameEverybodyWhateverTheySay(t *testing.T) {
	g := NewWithT(t)
	record := &v1alpha1.ApprovalRecord{Outcome: v1alpha1.OutcomeApproved, By: []v1alpha1.RecordedApproval{
		{Username: strings.Repeat("bob\n", 256), Reason: strings.Repeat("fine\n", 204)}, {Username: "eve"},
	}}
	e := approvedBy(fixture.MakeRollout("shop").History(fixture.MakeEntry("1.1.0").Approval(record)).Obj())[0]
	for _, text := range []string{e.message, e.metadata[metaActor]} {
		g.Expect(truncate.Message(text)).To(HaveSuffix(", eve"))
		g.Expect(text).NotTo(ContainSubstring("\n"))
	}
}
