// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const (
	takesValue = "spec.values.image.tag is overwritten by kustomize-controller for Kustomization flux-system/apps: " +
		"remove it from the manifest that this Kustomization applies, or name it in its spec.ignore"
	gitSetsValue = `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
spec: {values: {image: {tag: 0.9.0}}}
`
	gitSetsOtherValues = `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
spec: {values: {image: {name: shop}, replicas: 3}}
`
)

// valued returns the Rollout shop, a release, and the HelmRelease shop with a chart from
// a HelmRepository.
func valued(rollout *fixture.RolloutBuilder, release *fixture.HelmReleaseBuilder) []client.Object {
	return []client.Object{
		fixture.MakeScan("shop").Found("1.0.0").Obj(), fixture.MakePolicy("shop").Latest("1.0.0").Obj(), rollout.Obj(), release.Obj(),
	}
}

// imageTag returns a HelmRelease whose value image.tag the Rollout writes.
func imageTag() *fixture.HelmReleaseBuilder {
	return fixture.MakeHelmRelease("shop").FromChart("shop").DrivenBy("shop", "image.tag").Values(`{"image":{"name":"shop"},"replicas":3}`)
}

func (s *testEnv) helmRelease(name string) *helmv2.HelmRelease {
	h := &helmv2.HelmRelease{}
	s.Expect(s.Get(s.Ctx, s.Key(name), h)).To(Succeed())
	return h
}

// values returns spec.values of the HelmRelease shop.
func (s *testEnv) values() string {
	values := s.helmRelease("shop").Spec.Values
	if values == nil {
		return ""
	}
	return string(values.Raw)
}

// setValues makes a user edit the values of the HelmRelease shop.
func (s *testEnv) setValues(values string) {
	s.Change(&helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, func(o client.Object) {
		o.(*helmv2.HelmRelease).Spec.Values = &apiextensionsv1.JSON{Raw: []byte(values)}
	})
}

// helmInstalls simulates a helm-controller that installs the values of the HelmRelease
// shop, or cannot.
func (s *testEnv) helmInstalls(state string, ready metav1.ConditionStatus, reason, message string) {
	const chart = "7.0.0"
	s.ChangeStatus(&helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, func(o client.Object) {
		h := o.(*helmv2.HelmRelease)
		tried := fmt.Sprintf("sha256:%x", sha256.Sum256(h.Spec.Values.Raw))
		made := fixture.MakeHelmRelease("shop").Snapshot(chart, "", state).Obj().Status.History
		made[0].ConfigDigest, made[0].Version = tried, len(h.Status.History)+1
		h.Status.History = append(made, h.Status.History...)
		h.Status.LastAttemptedGeneration, h.Status.LastAttemptedRevision, h.Status.LastAttemptedConfigDigest = h.Generation, chart, tried
		h.Status.LastHandledReconcileAt = h.Annotations[v1alpha1.ReconcileRequestAnnotation]
		if ready == metav1.ConditionTrue {
			h.Status.ObservedGeneration = h.Generation
		}
		helmSays(h, ready, reason, message)
	})
}

// deployValues lets helm-controller install what the Rollout writes.
func (s *testEnv) deployValues() {
	s.rest("shop")
	s.helmInstalls("deployed", metav1.ConditionTrue, helmv2.UpgradeSucceededReason, "Helm upgrade succeeded")
	s.rest("shop")
}

func TestReleaseIsWrittenIntoAValue(t *testing.T) {
	s := open(t, valued(fixture.MakeRollout("shop"), imageTag())...)
	s.rest("shop")
	s.Expect(s.values()).To(MatchJSON(`{"image":{"name":"shop","tag":"1.0.0"},"replicas":3}`))
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying}}))
	s.deployValues()
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
	s.Expect(s.rollout("shop").Status.Targets).To(Equal([]v1alpha1.TargetStatus{
		{Kind: "HelmRelease", Namespace: s.Namespace, Name: "shop", Version: "1.0.0", State: v1alpha1.TargetApplied}}))
	s.Expect(ownedFields(s.helmRelease("shop"))).To(ConsistOf(requestField, promotionField("shop"), "spec.values.image.tag"))

	s.release("shop", "1.1.0")
	s.Wire.Forget()
	s.deployValues()
	s.Expect(s.values()).To(MatchJSON(`{"image":{"name":"shop","tag":"1.1.0"},"replicas":3}`))
	s.Expect(s.Wire.Writes()).To(Equal([]string{"patch Rollout/status shop", "patch HelmRelease shop", "patch Rollout/status shop"}))
	s.Wire.Forget()
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(BeEmpty())
}

func TestUpgradeWithAValueThatFails(t *testing.T) {
	s := open(t, valued(fixture.MakeRollout("shop").DeployTimeout(10*time.Minute), imageTag())...)
	s.rest("shop")
	s.helmInstalls("failed", metav1.ConditionFalse, helmv2.UpgradeFailedReason, "Helm upgrade failed: no such image")
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.TargetFailedReason, "HelmRelease shop: Helm upgrade failed: no such image"}))
	s.Pass(10*time.Minute + time.Second)
	s.rest("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeFailed}}))
}

// The values have no schema. Nevertheless, each value has an owner of its own, and so has
// each map that a write creates.
func TestEachValueHasItsOwner(t *testing.T) {
	s := open(t, valued(fixture.MakeRollout("shop"), fixture.MakeHelmRelease("shop").FromChart("shop").DrivenBy("shop", "web.image.tag"))...)
	s.deployValues()
	s.appliesAs("somebody", gitSetsOtherValues, nil)
	s.Expect(s.values()).To(MatchJSON(`{"web":{"image":{"tag":"1.0.0"}},"image":{"name":"shop"},"replicas":3}`))
	h := s.helmRelease("shop")
	s.Expect(ownedFields(h)).To(ConsistOf(requestField, promotionField("shop"), "spec.values.web.image.tag"))
	for _, entry := range h.ManagedFields {
		if entry.Manager == "rollout-controller" {
			s.Expect(entry.FieldsV1.GetRawString()).To(MatchJSON(`{
				"f:metadata":{"f:annotations":{"f:promotion.rollout.kuberik.com/shop":{},"f:reconcile.fluxcd.io/requestedAt":{}}},
				"f:spec":{"f:values":{".":{},"f:web":{".":{},"f:image":{".":{},"f:tag":{}}}}}}`))
		}
		if entry.Manager == "somebody" {
			s.Expect(fieldsOf(entry)).To(ConsistOf("spec.values.image.name", "spec.values.replicas"))
		}
	}
}

func TestHelmReleaseCarriesValuesOfSeveralRollouts(t *testing.T) {
	s := open(t, append(valued(fixture.MakeRollout("shop"), imageTag().DrivenBy("shop", "version").DrivenBy("cart", "cart.tag")),
		fixture.MakeScan("cart").Obj(), fixture.MakePolicy("cart").Latest("2.0.0").Obj(), fixture.MakeRollout("cart").Obj())...)
	s.rest("shop")
	s.rest("cart")
	s.deployValues()
	s.rest("cart")
	s.Expect(s.values()).To(MatchJSON(`{"image":{"name":"shop","tag":"1.0.0"},"version":"1.0.0","cart":{"tag":"2.0.0"},"replicas":3}`))
	s.Expect(s.history("cart")).To(Equal([]promoted{{ID: 1, Tag: "2.0.0", State: v1alpha1.BakeSucceeded}}))
	s.Expect(ownedFields(s.helmRelease("shop"))).To(ConsistOf(requestField, promotionField("shop"), promotionField("cart"),
		"spec.values.image.tag", "spec.values.version", "spec.values.cart.tag"))

	s.Change(s.helmRelease("shop"), annotateValue("version", ""))
	before := s.helmRelease("shop")
	s.rest("shop")
	s.rest("cart")
	after := s.helmRelease("shop")
	s.Expect(ownedFields(after)).To(ConsistOf(requestField, promotionField("shop"), promotionField("cart"), "spec.values.image.tag", "spec.values.cart.tag"))
	s.Expect(after.Spec).To(Equal(before.Spec), "nothing is deleted")
	s.Expect(after.Generation).To(Equal(before.Generation))
	s.release("shop", "1.1.0")
	s.deployValues()
	s.Expect(s.values()).To(MatchJSON(`{"image":{"name":"shop","tag":"1.1.0"},"version":"1.0.0","cart":{"tag":"2.0.0"},"replicas":3}`))

	s.Change(s.helmRelease("shop"), annotateValue("image.tag", "cart"))
	s.rest("shop")
	s.rest("cart")
	s.Expect(s.values()).To(MatchJSON(`{"image":{"name":"shop","tag":"2.0.0"},"version":"1.0.0","cart":{"tag":"2.0.0"},"replicas":3}`))
}

// annotateValue sets from which Rollout a value is taken; empty removes it.
func annotateValue(path, rollout string) func(client.Object) {
	return func(o client.Object) {
		annotations := o.GetAnnotations()
		key := v1alpha1.ValuesAnnotationPrefix + path + v1alpha1.ValuesAnnotationSuffix
		if annotations[key] = rollout; rollout == "" {
			delete(annotations, key)
		}
		o.SetAnnotations(annotations)
	}
}

// A chart whose tag the Rollout writes still makes the HelmRelease a target.
func TestLastValueOfAConsumerIsRelinquished(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0", fixture.MakeHelmRelease("shop").DrivenBy("shop", "image.tag").Obj())...)
	s.rest("shop")
	s.Expect(ownedFields(s.helmRelease("shop"))).To(ConsistOf(requestField, promotionField("shop"), "spec.values.image.tag"))
	s.Change(s.helmRelease("shop"), annotateValue("image.tag", ""))
	s.rest("shop")
	s.Expect(s.helmRelease("shop").ManagedFields).NotTo(ContainElement(HaveField("Manager", "rollout-controller")))
	s.Expect(s.values()).To(MatchJSON(`{"image":{"tag":"1.0.0"}}`))
}

func TestChartAndValueOfARelease(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0", fixture.MakeHelmRelease("shop").DrivenBy("shop", "image.tag").Obj())...)
	s.rest("shop")
	s.fluxApplies()
	s.helmInstalls("deployed", metav1.ConditionTrue, helmv2.UpgradeSucceededReason, "Helm upgrade succeeded")
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying), "it has the values, but not the chart")
	s.helmTries("shop", func(h, made *helmv2.HelmRelease) {
		made.Status.History[0].ConfigDigest, made.Status.History[0].Version = h.Status.LastAttemptedConfigDigest, 2
		h.Status.History = made.Status.History
	})
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeSucceeded))
	s.Expect(s.rollout("shop").Status.Targets).To(HaveLen(3), "the HelmRelease is one target")
}

func TestContestedValueNamesItsRival(t *testing.T) {
	s := open(t, valued(fixture.MakeRollout("shop"), imageTag())...)
	s.deployValues()
	for range 2 {
		s.Pass(time.Hour)
		s.parentApplies(gitSetsValue)
		s.deployValues()
	}
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.TargetConflictReason, "HelmRelease shop: " + takesValue}))
	s.Expect(s.condition("shop", v1alpha1.StalledCondition).Reason).To(Equal(v1alpha1.TargetConflictReason))
	s.parentApplies(gitSetsValue)
	s.rest("shop")
	s.Expect(s.values()).To(MatchJSON(`{"image":{"name":"shop","tag":"0.9.0"},"replicas":3}`), "it is left alone for a while")

	s.parentApplies(gitSetsOtherValues)
	s.deployValues()
	s.Expect(s.values()).To(MatchJSON(`{"image":{"name":"shop","tag":"1.0.0"},"replicas":3}`))
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Status).To(Equal(metav1.ConditionTrue))
}

func TestValueThatWasChangedByHandIsPutBack(t *testing.T) {
	s := open(t, valued(fixture.MakeRollout("shop"), imageTag())...)
	s.deployValues()
	s.Events.Take()
	for _, values := range []string{
		`{"image":{"name":"shop","tag":"0.9.0"},"replicas":3}`, `{"image":{"name":"shop","tag":7},"replicas":3}`, `{"image":null,"replicas":3}`,
	} {
		s.Pass(time.Hour)
		s.setValues(values)
		s.deployValues()
		s.Expect(s.values()).To(ContainSubstring(`"tag":"1.0.0"`), values)
		s.Expect(s.Events.Take()).To(Equal([]fixture.Event{{
			On: "shop", Type: corev1.EventTypeNormal, Reason: v1alpha1.TargetRestoredReason,
			Message: "HelmRelease " + s.Namespace + "/shop had drifted and was set to 1.0.0 again",
		}}))
	}
}

// A write must not replace the values of a user. It follows once they make way.
func TestValuesInTheWayAreAConflict(t *testing.T) {
	t.Parallel()
	for values, why := range map[string]string{
		`{"image":"shop:0.9.0"}`: "spec.values.image is a string, and a write would replace it with a map: " +
			"make it a map, or rename the annotation rollout.kuberik.com/values.image.tag.from",
		`{"image":{"tag":["0.9.0"]}}`: "spec.values.image.tag is a list, and a write would replace all of it: " +
			"rename the annotation rollout.kuberik.com/values.image.tag.from, so that it names a single value",
	} {
		t.Run(values, func(t *testing.T) {
			s := open(t, valued(fixture.MakeRollout("shop"), imageTag().Values(values))...)
			s.rest("shop")
			s.Expect(s.values()).To(MatchJSON(values))
			s.Expect(s.Wire.Writes()).NotTo(ContainElement("patch HelmRelease shop"))
			s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
				metav1.ConditionFalse, v1alpha1.TargetConflictReason, "HelmRelease shop: " + why}))
			s.setValues(`{"replicas":3}`)
			s.deployValues()
			s.Expect(s.values()).To(MatchJSON(`{"image":{"tag":"1.0.0"},"replicas":3}`))
			s.Expect(s.condition("shop", v1alpha1.StalledCondition)).To(BeZero())
			s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
		})
	}
}

func TestPathThatIsNoneIsAConflictOfItsObjectOnly(t *testing.T) {
	s := open(t, append(valued(fixture.MakeRollout("shop"), imageTag().DrivenBy("shop", "image..tag")),
		fixture.MakeRepository("shop").DrivenBy("shop").Obj())...)
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.TargetConflictReason, `HelmRelease shop: "image..tag" is not the path of a value, ` +
			"which has keys with a dot between each two: rename the annotation rollout.kuberik.com/values.image..tag.from"}))
	s.Expect(s.values()).To(MatchJSON(`{"image":{"name":"shop","tag":"1.0.0"},"replicas":3}`))
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"))
}

func TestPathsWithinEachOtherAreAConflictOfBothRollouts(t *testing.T) {
	s := open(t, append(valued(fixture.MakeRollout("shop"), fixture.MakeHelmRelease("shop").FromChart("shop").
		DrivenBy("shop", "image.tag").DrivenBy("cart", "image")),
		fixture.MakeScan("cart").Obj(), fixture.MakePolicy("cart").Latest("2.0.0").Obj(), fixture.MakeRollout("cart").Obj())...)
	for _, name := range []string{"shop", "cart"} {
		s.rest(name)
		s.Expect(s.condition(name, v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
			metav1.ConditionFalse, v1alpha1.TargetConflictReason, "HelmRelease shop: the annotations rollout.kuberik.com/values.image.from and " +
				"rollout.kuberik.com/values.image.tag.from cannot both be followed, because one of the values contains the other: remove one of them"}))
	}
	s.Expect(s.values()).To(BeEmpty())
}

func TestWriteOfAValueThatIsRejected(t *testing.T) {
	s := open(t, valued(fixture.MakeRollout("shop"), imageTag())...)
	reject := true
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		if reject && write == "patch HelmRelease shop" {
			return fixture.Fault{Err: apierrors.NewForbidden(schema.GroupResource{Group: "helm.toolkit.fluxcd.io", Resource: "helmreleases"}, "shop", nil)}
		}
		return fixture.Fault{}
	}
	_, err := s.try("shop")
	s.Expect(err).To(HaveOccurred(), "it is tried again")
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(And(HaveField("Reason", v1alpha1.TargetFailedReason),
		HaveField("Message", HavePrefix("HelmRelease shop: patch HelmRelease "+s.Namespace+"/shop: helmreleases.helm.toolkit.fluxcd.io \"shop\" is forbidden"))))
	reject = false
	s.deployValues()
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
}

func TestValueThatRunsIsAdopted(t *testing.T) {
	applied := fixture.MakeRollout("shop").FirstRelease(v1alpha1.FirstReleaseApplied)
	s := open(t, valued(applied, imageTag().Values(`{"image":{"tag":"0.9.0"}}`))...)
	s.deployValues()
	s.Expect(s.history("shop")).To(Equal([]promoted{
		{ID: 2, Tag: "1.0.0", State: v1alpha1.BakeDeploying}, {ID: 1, Tag: "0.9.0", State: v1alpha1.BakeSucceeded}}))

	s = open(t, valued(applied, imageTag())...)
	s.rest("shop")
	s.Expect(s.history("shop")).To(BeEmpty())
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Reason).To(Equal(v1alpha1.FirstReleaseUnknownReason))
}

func TestOwnValueIsAdoptedWhenTheHistoryIsLost(t *testing.T) {
	s := open(t, valued(fixture.MakeRollout("shop"), imageTag())...)
	s.deployValues()
	s.ChangeStatus(s.rollout("shop"), func(o client.Object) { o.(*v1alpha1.Rollout).Status = v1alpha1.RolloutStatus{} })
	s.release("shop", "1.1.0")
	s.reconcile("shop")
	s.Expect(s.history("shop")[0].Tag).To(Equal("1.0.0"))
}

func TestOrphanedHelmReleaseIsReported(t *testing.T) {
	s := open(t, imageTag().Obj())
	s.Expect(s.reconcile("shop").RequeueAfter).To(Equal(orphanGrace))
	s.Pass(orphanGrace)
	s.reconcile("shop")
	s.Expect(s.Events.Take()).To(ConsistOf(HaveField("Reason", v1alpha1.RolloutNotFoundReason)))
}

// A HelmRelease without an annotation and without own fields is not touched, whatever
// else is in it.
func TestHelmReleaseOfNobodyIsNotTouched(t *testing.T) {
	other := fixture.MakeHelmRelease("other").FromChart("other").Values(`{"image":{"tag":"0.9.0"}}`).Obj()
	other.Annotations = fixture.MakeKustomization("other").DrivenBy("shop", "VERSION").Obj().Annotations
	other.Annotations[v1alpha1.RolloutAnnotation] = "shop"
	s := open(t, append(valued(fixture.MakeRollout("shop"), imageTag()), other)...)
	before := s.helmRelease("other").ResourceVersion
	s.deployValues()
	s.Expect(s.helmRelease("other").ResourceVersion).To(Equal(before))
	s.Expect(s.rollout("shop").Status.Targets).To(HaveLen(1))
}

// TestControllerMayDieBetweenTheWritesOfAValue crashes the controller after each write of a
// promotion, and before the first.
func TestControllerMayDieBetweenTheWritesOfAValue(t *testing.T) {
	t.Parallel()
	for n := range 4 {
		t.Run(fmt.Sprintf("after write %d", n), func(t *testing.T) {
			s := open(t, valued(fixture.MakeRollout("shop"), imageTag())...)
			s.Wire.Fail = func(write int, _ string, _ client.Object) fixture.Fault {
				if write == max(n, 1) {
					return fixture.Fault{Err: fixture.ErrDead, Lost: n > 0, Fatal: true}
				}
				return fixture.Fault{}
			}
			for range 3 {
				_, _ = s.try("shop")
			}
			s.Wire = &fixture.Wire{}
			s.restart()
			s.deployValues()
			s.Expect(s.values()).To(MatchJSON(`{"image":{"name":"shop","tag":"1.0.0"},"replicas":3}`))
			s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
		})
	}
}

func TestHelmReleaseWakesTheRolloutsOfItsValues(t *testing.T) {
	s := open(t, valued(fixture.MakeRollout("shop"), imageTag())...)
	s.play(t, testPlane.RESTConfig())
	s.Eventually(s.values).Should(MatchJSON(`{"image":{"name":"shop","tag":"1.0.0"},"replicas":3}`))
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying})
	s.helmInstalls("deployed", metav1.ConditionTrue, helmv2.UpgradeSucceededReason, "Helm upgrade succeeded")
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded})
	s.setValues(`{"image":{"tag":"0.9.0"}}`)
	s.Eventually(s.values).Should(MatchJSON(`{"image":{"tag":"1.0.0"}}`))
}

// The source of a chart belongs to nobody. That it does not exist is reported until it
// does.
func TestSourceOfAChartWakesTheRolloutsOfTheValues(t *testing.T) {
	s := open(t)
	elsewhere := s.OpenNamespace(nil)
	s.Add(imageTag().From("OCIRepository", "chart").Obj(),
		fixture.MakeHelmRelease("far").From("OCIRepository", "chart").FromNamespace(elsewhere).DrivenBy("cart", "tag").Obj())
	woken := func(namespace string) []string {
		var names []string
		repository := fixture.MakeRepository("chart").InNamespace(namespace).Obj()
		for _, request := range s.reconciler.concerned().rolloutsOfSource(s.Ctx, repository) {
			names = append(names, request.String())
		}
		return names
	}
	s.Expect(woken(s.Namespace)).To(Equal([]string{s.Key("shop").String()}))
	s.Expect(woken(elsewhere)).To(Equal([]string{s.Key("cart").String()}))
}
