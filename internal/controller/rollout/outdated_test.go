// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// openAfterARestore opens a namespace in which #2 runs 1.1.0, a closed gate holds 1.2.0,
// and the status of the Rollout was restored from a backup that only knows #1.
func openAfterARestore(t *testing.T) *testEnv {
	t.Helper()
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	backup := s.rollout("shop").Status
	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}))
	s.Add(fixture.MakeGate("approval", "shop").Closed().Obj())
	s.release("shop", "1.2.0")
	s.rest("shop")
	s.restore(backup)
	return s
}

// restore replaces the status, as a tool does that restores a backup.
func (s *testEnv) restore(backup v1alpha1.RolloutStatus) {
	s.ChangeStatus(fixture.MakeRollout("shop").Obj(), func(o client.Object) { o.(*v1alpha1.Rollout).Status = *backup.DeepCopy() })
	s.restart()
	s.Events.Take()
	s.Wire.Forget()
}

// promotions returns the ids that the targets carry.
func (s *testEnv) promotions() []int64 {
	repository, kustomization := s.shopTargets()
	return []int64{targets.PromotionOf(repository, "shop"), targets.PromotionOf(kustomization, "shop")}
}

func (s *testEnv) tags() []string {
	return []string{s.carried("shop")["tag"], s.carried("shop")["VERSION"]}
}

func TestRestoredStatusTakesNothingBack(t *testing.T) {
	s := openAfterARestore(t)
	repository, kustomization := s.shopTargets()
	s.rest("shop")
	s.fluxApplies()
	s.rest("shop")

	s.Expect(s.Wire.Writes()).To(Equal([]string{"patch Rollout/status shop"}))
	repositoryNow, kustomizationNow := s.shopTargets()
	s.Expect(repositoryNow.ResourceVersion).To(Equal(repository.ResourceVersion))
	s.Expect(kustomizationNow.ResourceVersion).To(Equal(kustomization.ResourceVersion))
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))

	message := "the history ends with 1.0.0 (#1), but promotion #2 has written Kustomization " + s.Namespace + "/shop, and the targets carry 1.1.0: " +
		"an old status was restored, so nothing is written; annotate the Rollout with rollout.kuberik.com/adopt: \"true\" to go on from 1.1.0, or set spec.wantedVersion"
	for kind, want := range map[string]metav1.ConditionStatus{
		v1alpha1.StalledCondition: metav1.ConditionTrue, v1alpha1.ReadyCondition: metav1.ConditionFalse,
	} {
		s.Expect(s.condition("shop", kind)).To(Equal(condition{want, v1alpha1.HistoryOutdatedReason, message}))
	}
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.HistoryOutdatedReason,
		"Kustomization shop: was written by promotion #2, which the history does not have; " +
			"OCIRepository shop: was written by promotion #2, which the history does not have"}))
	s.Expect(s.kstatus("shop")).To(Equal(status.FailedStatus))
	s.Expect(s.Events.Take()).To(ContainElement(
		fixture.Event{On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.HistoryOutdatedReason, Message: message}))
	s.Expect(s.rollout("shop").Status.ReleaseCandidates[0].Holds[0].Reason).To(Equal(v1alpha1.HistoryOutdatedReason))
}

func TestRestoredStatusGoesOn(t *testing.T) {
	t.Parallel()
	newer := []int64{fixture.Noon.Unix(), fixture.Noon.Unix()}
	for name, tt := range map[string]struct {
		asks func(*testEnv)
		want string
		ids  []int64
	}{
		"by adoption":                  {func(s *testEnv) { s.ask(v1alpha1.AdoptAnnotation, "true") }, "1.1.0", []int64{2, 2}},
		"by a pin of what runs":        {func(s *testEnv) { s.pinTo("1.1.0") }, "1.1.0", []int64{2, 2}},
		"by a pin of an older version": {func(s *testEnv) { s.pinTo("0.9.0") }, "0.9.0", newer},
		"by a release that is forced":  {func(s *testEnv) { s.ask(v1alpha1.ForceDeployAnnotation, "1.2.0") }, "1.2.0", newer},
		"by a pin that is confirmed":   {func(s *testEnv) { s.pinTo("1.0.0"); s.ask(v1alpha1.AdoptAnnotation, "true") }, "1.0.0", newer},
	} {
		t.Run(name, func(t *testing.T) {
			s := openAfterARestore(t)
			s.rest("shop")
			tt.asks(s)
			s.deploy("shop")
			s.Expect(s.history("shop")).To(Equal([]promoted{
				{ID: fixture.Noon.Unix(), Tag: tt.want, State: v1alpha1.BakeSucceeded}, {ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
			s.Expect(s.tags()).To(Equal([]string{tt.want, tt.want}))
			s.Expect(s.promotions()).To(Equal(tt.ids))
			s.Expect(s.kstatus("shop")).To(Equal(status.CurrentStatus))
			s.Expect(s.asked()).NotTo(HaveKey(v1alpha1.AdoptAnnotation))

			s.pin("shop", nil)
			s.Change(fixture.MakeGate("approval", "shop").Obj(), func(o client.Object) { o.(*v1alpha1.RolloutGate).Spec.Passing = new(true) })
			s.deploy("shop")
			s.Expect(s.tags()).To(Equal([]string{"1.2.0", "1.2.0"}))
		})
	}
}

// The pin is as old as the status. It would take the targets back at once.
func TestRestoredPinWaitsForAUser(t *testing.T) {
	s := openAfterARestore(t)
	s.pinTo("1.0.0")
	s.rest("shop")
	s.Expect(s.tags()).To(Equal([]string{"1.1.0", "1.1.0"}))
	s.Expect(s.condition("shop", v1alpha1.StalledCondition).Message).To(HaveSuffix(
		`annotate the Rollout with rollout.kuberik.com/adopt: "true" to deploy 1.0.0, which spec.wantedVersion pins as it did then, or pin another version`))
}

// Flux was slow, or the controller died, between the two writes of a promotion. What had
// not followed by then follows after the adoption.
func TestRestoredStatusOfTargetsThatDisagreeWaitsForAPin(t *testing.T) {
	s := openAfterARestore(t)
	s.changeTag("1.0.0")
	s.ask(v1alpha1.AdoptAnnotation, "true")
	s.rest("shop")
	s.Expect(s.tags()).To(Equal([]string{"1.0.0", "1.1.0"}))
	s.Expect(s.condition("shop", v1alpha1.StalledCondition).Message).To(HaveSuffix(
		"and the targets carry 1.0.0, 1.1.0: an old status was restored, so nothing is written; set spec.wantedVersion to the right one"))
	s.pinTo("1.1.0")
	s.deploy("shop")
	s.Expect(s.tags()).To(Equal([]string{"1.1.0", "1.1.0"}))
	s.Expect(s.asked()).To(BeEmpty())
}

// After a change of the leader, the cache may show a Rollout from before a promotion, and
// the targets from after it. The status that the cache does not show is right.
func TestCacheWithAnOldRolloutIsNoOldStatus(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	old := s.rollout("shop")
	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.readRolloutFrom(old)
	before := s.rollout("shop")
	s.Events.Take()
	s.Wire.Forget()
	for range 3 {
		s.reconcile("shop")
	}
	s.Expect(s.rollout("shop")).To(Equal(before), "the write of a status that was read long ago is a conflict")
	s.Expect(s.Events.Take()).To(BeEmpty())
	s.Expect(s.Wire.Writes()).NotTo(ContainElement(HavePrefix("patch OCIRepository")))
	s.Expect(s.Wire.Writes()).NotTo(ContainElement(HavePrefix("patch Kustomization")))
	s.Expect(s.tags()).To(Equal([]string{"1.1.0", "1.1.0"}))

	s.reads = nil
	s.restart()
	s.rest("shop")
	s.Expect(s.kstatus("shop")).To(Equal(status.CurrentStatus))
}

// Somebody wants to adopt, but the cache shows a Rollout from before a promotion.
func TestCacheWithAnOldRolloutAdoptsNothing(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	old := s.rollout("shop")
	metav1.SetMetaDataAnnotation(&old.ObjectMeta, v1alpha1.AdoptAnnotation, "true")
	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.readRolloutFrom(old)
	s.reconcile("shop")
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}))
}

func TestAdoptionThatIsNotNeededIsAnswered(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.Events.Take()
	s.ask(v1alpha1.AdoptAnnotation, "true")
	s.rest("shop")
	s.Expect(s.asked()).To(BeEmpty())
	s.Expect(s.condition("shop", v1alpha1.RequestAcceptedCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.AdoptNotNeededReason, "there is nothing to adopt: the history is not older than the targets"}))
	s.Expect(s.Events.Take()).To(Equal([]fixture.Event{{
		On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.AdoptNotNeededReason,
		Message: "there is nothing to adopt: the history is not older than the targets"}}))
}

// A backup of the targets is older than the status: they drifted, like any.
func TestTargetsThatWereRestoredFollow(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	backup, _ := s.shopTargets()
	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.Remove(backup, "shop")
	backup.ResourceVersion, backup.UID, backup.ManagedFields = "", "", nil
	s.Add(backup)
	s.Expect(s.promotions()).To(Equal([]int64{1, 2}))
	s.deploy("shop")
	s.Expect(s.tags()).To(Equal([]string{"1.1.0", "1.1.0"}))
	s.Expect(s.promotions()).To(Equal([]int64{2, 2}))
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}))
}

// The other Rollout of the Kustomization has nothing to do with it.
func TestRestoredStatusHoldsNoOtherRollout(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0",
		fixture.MakeScan("cart").Obj(), fixture.MakePolicy("cart").Latest("2.0.0").Obj(), fixture.MakeRollout("cart").Obj())...)
	s.Merge(fixture.MakeKustomization("shop").Obj(), `{"metadata":{"annotations":{"rollout.kuberik.com/substitute.CART.from":"cart"}}}`)
	s.deploy("shop")
	s.deploy("cart")
	backup := s.rollout("shop").Status
	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.restore(backup)
	s.rest("shop")
	s.release("cart", "2.1.0")
	s.deploy("cart")
	s.Expect(s.kstatus("cart")).To(Equal(status.CurrentStatus))
	s.Expect(s.kstatus("shop")).To(Equal(status.FailedStatus))
	s.Expect(s.carried("shop")).To(Equal(map[string]string{"tag": "1.1.0", "VERSION": "1.1.0", "CART": "2.1.0", "TIER": "gold"}))
	_, kustomization := s.shopTargets()
	s.Expect(kustomization.Annotations).To(HaveKeyWithValue("promotion.rollout.kuberik.com/shop", "2"))
	s.Expect(kustomization.Annotations).To(HaveKeyWithValue("promotion.rollout.kuberik.com/cart", "2"))
	s.Expect(ownedFields(kustomization)).To(ConsistOf(requestField, promotionField("shop"), promotionField("cart"),
		"spec.postBuild.substitute.VERSION", "spec.postBuild.substitute.CART"))
}

// The Rollout store had the same targets, and many promotions, before it was called shop.
func TestRolloutThatWasRenamedLeavesNoID(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("store"), "1.0.0")...)
	named := func(rollout string) {
		s.Merge(fixture.MakeRepository("shop").Obj(), `{"metadata":{"annotations":{"rollout.kuberik.com/rollout":"`+rollout+`"}}}`)
		s.Merge(fixture.MakeKustomization("shop").Obj(), `{"metadata":{"annotations":{"rollout.kuberik.com/substitute.VERSION.from":"`+rollout+`"}}}`)
	}
	store := s.rollout("store")
	store.Spec.ReleasesImagePolicy.Name = "shop"
	s.Expect(s.Update(s.Ctx, store)).To(Succeed())
	named("store")
	s.deploy("store")
	repository, kustomization := s.shopTargets()
	for _, o := range []client.Object{repository, kustomization} {
		s.Expect(o.GetAnnotations()).To(HaveKeyWithValue("promotion.rollout.kuberik.com/store", "1"))
	}
	s.Remove(&v1alpha1.Rollout{}, "store")
	s.Add(fixture.MakeRollout("shop").Obj())
	named("shop")
	s.deploy("shop")
	s.release("shop", "1.1.0")
	s.deploy("shop")
	repository, kustomization = s.shopTargets()
	for _, o := range []client.Object{repository, kustomization} {
		s.Expect(o.GetAnnotations()).NotTo(HaveKey("promotion.rollout.kuberik.com/store"))
	}
	s.Expect(ownedFields(repository)).To(ConsistOf(requestField, promotionField("shop"), "spec.ref.tag"))
	s.Expect(ownedFields(kustomization)).To(ConsistOf(requestField, promotionField("shop"), "spec.postBuild.substitute.VERSION"))
}

// A manifest was exported from another cluster, with the annotation in it.
func TestCopiedManifestHoldsNoNewRollout(t *testing.T) {
	copied := fixture.MakeRepository("shop").DrivenBy("shop").Tag("0.9.0").Obj()
	metav1.SetMetaDataAnnotation(&copied.ObjectMeta, "promotion.rollout.kuberik.com/shop", "41")
	s := open(t, fixture.MakeScan("shop").Found("1.0.0").Obj(), fixture.MakePolicy("shop").Latest("1.0.0").Obj(),
		fixture.MakeRollout("shop").Obj(), copied)
	s.reconcile("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: fixture.Noon.Unix(), Tag: "0.9.0", State: v1alpha1.BakeDeploying}}), "what was promoted there is taken over")
	s.deploy("shop")
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: fixture.Noon.Unix() + 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}))
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"))
}

// The same manifest is added to a Rollout that has a history of its own.
func TestCopiedManifestSaysTheWayOut(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	copied := fixture.MakeRepository("more").DrivenBy("shop").Tag("0.9.0").Obj()
	metav1.SetMetaDataAnnotation(&copied.ObjectMeta, "promotion.rollout.kuberik.com/shop", "41")
	s.Add(copied)
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.StalledCondition)).To(Equal(condition{
		metav1.ConditionTrue, v1alpha1.HistoryOutdatedReason,
		"the history ends with 1.0.0 (#1), but promotion #41 has written OCIRepository " + s.Namespace + "/more, and the targets carry 0.9.0, 1.0.0: " +
			"an old status was restored, so nothing is written; set spec.wantedVersion to the right one"}))
	s.Merge(fixture.MakeRepository("more").Obj(), `{"metadata":{"annotations":{"promotion.rollout.kuberik.com/shop":null}}}`)
	s.deploy("shop")
	s.Expect(s.kstatus("shop")).To(Equal(status.CurrentStatus))
	s.Expect(s.carried("more")["tag"]).To(Equal("1.0.0"))
}

// The status was restored together with nothing, and the tool that restores the targets
// has written them under its own name. What ran there is not taken for a first release.
func TestLostHistoryIsKnownByTheTargets(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.Add(fixture.MakeGate("approval", "shop").Closed().Obj())
	s.release("shop", "1.1.0")
	repository, kustomization := s.shopTargets()
	for _, o := range []client.Object{repository, kustomization} {
		s.Remove(o, "shop")
		o.SetResourceVersion("")
		o.SetUID("")
		o.SetManagedFields(nil)
		s.Add(o)
	}
	s.loseStatus()
	s.restart()
	s.deploy("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: fixture.Noon.Unix(), Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
	s.Expect(s.tags()).To(Equal([]string{"1.0.0", "1.0.0"}))
}
