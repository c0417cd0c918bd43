// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestTargetThatWasChangedByHandIsPutBack(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.Events.Take()
	s.Wire.Forget()

	s.changeTag("0.9.0")
	s.deploy("shop")
	s.Expect(s.carried("shop")).To(Equal(map[string]string{"tag": "1.0.0", "VERSION": "1.0.0", "TIER": "gold"}))
	s.Expect(s.Wire.Writes()).To(ContainElement("patch OCIRepository shop"))
	s.Expect(s.Events.Take()).To(Equal([]fixture.Event{{
		On: "shop", Type: corev1.EventTypeNormal, Reason: v1alpha1.TargetRestoredReason,
		Message: "OCIRepository " + s.Namespace + "/shop had drifted and was set to 1.0.0 again",
	}}))
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
}

func TestTargetThatWasChangedDuringAPromotionIsPutBack(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.rest("shop")
	s.changeTag("0.9.0")
	s.fluxApplies()
	s.rest("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"))
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying))
	s.deploy("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
}

func TestTargetThatIsAnnotatedLaterIsBroughtUpToDate(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")

	s.Add(fixture.MakeRepository("late").DrivenBy("shop").Tag("0.1.0").Obj())
	s.rest("shop")
	s.Expect(s.carried("late")).To(Equal(map[string]string{"tag": "1.0.0"}))
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.TargetsPendingReason, "waiting for Flux to apply 1.0.0 to 3 targets"}))
	s.deploy("shop")
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
		metav1.ConditionTrue, v1alpha1.TargetsAppliedReason, "applied 1.0.0 to 3 targets; OCIRepository late: " + nothingApplies}))
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
}

func TestDeletedTargetIsNotRecreatedAndHoldsNothingUp(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0", fixture.MakeRepository("doomed").DrivenBy("shop").Obj())...)
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		if write == "patch OCIRepository doomed" { // just before it is written
			s.Remove(&sourcev1.OCIRepository{}, "doomed")
		}
		return fixture.Fault{}
	}
	s.deploy("shop")
	s.Expect(client.IgnoreNotFound(s.Get(s.Ctx, s.Key("doomed"), &sourcev1.OCIRepository{}))).To(Succeed())
	s.Expect(s.carried("doomed")).To(BeEmpty())
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
	s.Expect(s.rollout("shop").Status.Targets).To(HaveLen(2))
}

func TestKustomizationCarriesVariablesOfSeveralRollouts(t *testing.T) {
	s := open(t,
		fixture.MakeScan("shop").Obj(), fixture.MakePolicy("shop").Latest("1.0.0").Obj(), fixture.MakeRollout("shop").Obj(),
		fixture.MakeScan("cart").Obj(), fixture.MakePolicy("cart").Latest("2.0.0").Obj(), fixture.MakeRollout("cart").Obj(),
		fixture.MakeKustomization("shop").From("GitRepository", "fleet").
			DrivenBy("shop", "SHOP").DrivenBy("shop", "SHOP_AGAIN").DrivenBy("cart", "CART").Substitute("TIER", "gold").Obj(),
	)
	s.deploy("shop")
	s.deploy("cart")
	s.Expect(s.carried("shop")).To(Equal(map[string]string{"SHOP": "1.0.0", "SHOP_AGAIN": "1.0.0", "CART": "2.0.0", "TIER": "gold"}))

	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.deploy("cart")
	s.Expect(s.carried("shop")).To(Equal(map[string]string{"SHOP": "1.1.0", "SHOP_AGAIN": "1.1.0", "CART": "2.0.0", "TIER": "gold"}))

	k := &kustomizev1.Kustomization{}
	s.Expect(s.Get(s.Ctx, s.Key("shop"), k)).To(Succeed())
	s.Expect(ownedFields(k)).To(ConsistOf(requestField, promotionField("shop"), promotionField("cart"),
		"spec.postBuild.substitute.SHOP", "spec.postBuild.substitute.SHOP_AGAIN", "spec.postBuild.substitute.CART"))
}

func TestTwoRolloutsThatWriteAtOnceKeepEachOthersVariables(t *testing.T) {
	s := open(t,
		fixture.MakeScan("shop").Obj(), fixture.MakePolicy("shop").Latest("1.0.0").Obj(), fixture.MakeRollout("shop").Obj(),
		fixture.MakeScan("cart").Obj(), fixture.MakePolicy("cart").Latest("2.0.0").Obj(), fixture.MakeRollout("cart").Obj(),
		fixture.MakeKustomization("shop").From("GitRepository", "fleet").DrivenBy("shop", "SHOP").DrivenBy("cart", "CART").Obj(),
	)
	other := &Reconciler{Client: s.reconciler.Client, APIReader: s, Events: s.Events, Now: s.Clock.Now}
	s.Wire.Fail = func(n int, _ string, _ client.Object) fixture.Fault {
		if n == 2 { // shop has read the Kustomization, and is about to write it
			_, err := other.Reconcile(s.Ctx, ctrl.Request{NamespacedName: s.Key("cart")})
			s.Expect(err).NotTo(HaveOccurred())
		}
		return fixture.Fault{}
	}
	s.reconcile("shop")
	s.deploy("shop")
	s.deploy("cart")
	s.Expect(s.carried("shop")).To(Equal(map[string]string{"SHOP": "1.0.0", "CART": "2.0.0"}))
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
	s.Expect(s.history("cart")).To(Equal([]promoted{{ID: 1, Tag: "2.0.0", State: v1alpha1.BakeSucceeded}}))
}

func TestTargetKeepsEveryFieldButOurs(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	repository, kustomization := &sourcev1.OCIRepository{}, &kustomizev1.Kustomization{}
	s.Expect(s.Get(s.Ctx, s.Key("shop"), repository)).To(Succeed())
	s.Expect(s.Get(s.Ctx, s.Key("shop"), kustomization)).To(Succeed())

	s.Expect(ownedFields(repository)).To(ConsistOf(requestField, promotionField("shop"), "spec.ref.tag"))
	s.Expect(ownedFields(kustomization)).To(ConsistOf(requestField, promotionField("shop"), "spec.postBuild.substitute.VERSION"))
	s.Expect(ownedFields(s.rollout("shop"))).To(BeEmpty())
}

// promotionField is the field with the id of a Rollout's promotion.
func promotionField(rollout string) string {
	return "metadata.annotations." + v1alpha1.PromotionAnnotationPrefix + rollout
}

// requestField is the field by which each write asks Flux to reconcile.
const requestField = "metadata.annotations.reconcile.fluxcd.io/requestedAt"

// ownedFields returns the fields of an object, except its status, that the field manager
// rollout-controller owns.
func ownedFields(o client.Object) []string {
	var all []string
	for _, entry := range o.GetManagedFields() {
		if entry.Manager != "rollout-controller" || entry.Subresource != "" {
			continue
		}
		all = append(all, fieldsOf(entry)...)
	}
	return all
}

func fieldsOf(entry metav1.ManagedFieldsEntry) []string {
	fields := map[string]any{}
	if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
		panic(err)
	}
	return leaves(fields, "")
}

func leaves(fields map[string]any, path string) []string {
	var all []string
	for key, inner := range fields {
		name, ok := strings.CutPrefix(key, "f:")
		if !ok {
			continue // "." stands for the map itself
		}
		below, _ := inner.(map[string]any)
		if len(below) == 0 {
			all = append(all, path+name)
		}
		all = append(all, leaves(below, path+name+".")...)
	}
	return all
}

func TestSuspendedTargetIsNamed(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0", fixture.MakeRepository("still").DrivenBy("shop").Suspended().Obj())...)
	s.deploy("shop")
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.TargetsPendingReason,
		"waiting for Flux to apply 1.0.0 to 3 targets; OCIRepository still is suspended: resume it"}))
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying))
	s.Expect(s.carried("still")).To(Equal(map[string]string{"tag": "1.0.0"}))
}

func TestFailureThatFluxReportsIsShownAndEndsWithIt(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.rest("shop")
	s.fluxFails("shop", "Deployment/shop: no such field")
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.TargetFailedReason, "Kustomization shop: Deployment/shop: no such field"}))
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying))
	s.Expect(s.Events.Take()[1]).To(Equal(fixture.Event{
		On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.TargetFailedReason,
		Message: "Kustomization shop: Deployment/shop: no such field"}))

	s.deploy("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeSucceeded))
}

// A reconciliation of Flux that began before the write ends after it, and reports its
// failure with the generation of the write.
func TestPassOfFluxThatBeganBeforeTheWriteSaysNothingOfIt(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.rest("shop")
	s.Events.Take()
	pullFails := func(handled string) {
		s.ChangeStatus(fixture.MakeRepository("shop").Obj(), func(o client.Object) {
			status := &o.(*sourcev1.OCIRepository).Status
			status.LastHandledReconcileAt = handled
			fluxSays(&status.Conditions, o.GetGeneration(), metav1.ConditionFalse, "manifests/latest: not found")
		})
		s.rest("shop")
	}
	repository := &sourcev1.OCIRepository{}
	s.Expect(s.Get(s.Ctx, s.Key("shop"), repository)).To(Succeed())

	pullFails("")
	s.Expect(s.Events.Take()).To(BeEmpty())
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition).Reason).To(Equal(v1alpha1.TargetsPendingReason))
	pullFails(repository.Annotations[v1alpha1.ReconcileRequestAnnotation])
	s.Expect(s.Events.Take()).To(Equal([]fixture.Event{{
		On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.TargetFailedReason,
		Message: "OCIRepository shop: manifests/latest: not found"}}))
}

func TestSuspendedRolloutDoesNothing(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	suspend := func(is bool) {
		s.Change(fixture.MakeRollout("shop").Obj(), func(o client.Object) { o.(*v1alpha1.Rollout).Spec.Suspend = is })
	}
	suspend(true)
	s.release("shop", "1.1.0")
	s.changeTag("0.9.0")
	s.Wire.Forget()
	s.Events.Take()
	s.reconcile("shop")
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	s.Expect(s.Events.Take()).To(BeEmpty())

	suspend(false)
	s.deploy("shop")
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}))
}
