// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// openObeying opens an env in which 1.0.0 runs, and nothing else was found.
func openObeying(t *testing.T) *testEnv {
	t.Helper()
	return obeying(open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...))
}

func obeying(s *testEnv) *testEnv {
	s.quarantines = true
	s.restart()
	s.deploy("shop")
	return s
}

// quarantined returns a ReleaseQuarantine of a tag of the shop.
func quarantineOfTag(tag string) *v1alpha1.ReleaseQuarantine {
	return &v1alpha1.ReleaseQuarantine{
		ObjectMeta: metav1.ObjectMeta{Name: "bad", Namespace: fixture.Namespace},
		Spec:       v1alpha1.ReleaseQuarantineSpec{Image: "registry.example.com/shop", Tags: []string{tag}},
	}
}

// recall creates a ClusterReleaseQuarantine of a tag of the shop.
func (s *testEnv) recall(t *testing.T, tag string, selector *metav1.LabelSelector) *v1alpha1.ClusterReleaseQuarantine {
	t.Helper()
	q := &v1alpha1.ClusterReleaseQuarantine{ObjectMeta: metav1.ObjectMeta{Name: "recall-" + s.Namespace}}
	q.Spec.ReleaseQuarantineSpec, q.Spec.NamespaceSelector = quarantineOfTag(tag).Spec, selector
	s.Expect(s.Create(s.Ctx, q)).To(Succeed())
	t.Cleanup(func() { _ = client.IgnoreNotFound(testClient.Delete(context.WithoutCancel(s.Ctx), q)) })
	return q
}

// isHeldBy checks that 1.1.0 is held, and by what.
func (s *testEnv) isHeldBy(name string) {
	s.Expect(s.history("shop")).To(HaveLen(1))
	s.Expect(s.holdsOf("shop")).To(ConsistOf(And(
		HaveField("Reason", v1alpha1.QuarantinedReason), HaveField("Message", HavePrefix("1.1.0 is in quarantine by "+name)))))
}

// takes checks that 1.1.0 is promoted.
func (s *testEnv) takes() {
	s.Expect(s.history("shop")[0]).To(Equal(promoted{2, "1.1.0", v1alpha1.BakeDeploying}))
}

// TestQuarantineOfAnotherNamespace runs alone: it reads those of all namespaces, and a test
// has one that cannot be read.
func TestQuarantineOfAnotherNamespace(t *testing.T) {
	for name, everywhere := range map[string]bool{"holds nothing": false, "holds with the scope Cluster": true} {
		t.Run(name, func(t *testing.T) {
			s := obeying(openAlone(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...))
			s.reconciler.QuarantinesEverywhere = everywhere
			q := quarantineOfTag("1.1.0")
			q.Namespace = s.OpenNamespace(nil)
			q.Spec.Image += "-" + s.Namespace // no other test has it
			s.Add(q)
			s.Change(fixture.MakeScan("shop").Obj(), func(o client.Object) { setImage(o, q.Spec.Image) })
			s.release("shop", "1.1.0")
			s.rest("shop")
			if everywhere {
				s.isHeldBy("ReleaseQuarantine " + q.Namespace + "/bad")
				return
			}
			s.takes()
		})
	}
}

func TestRecallHoldsTheNamespacesThatItSelects(t *testing.T) {
	s := openObeying(t)
	q := s.recall(t, "1.1.0", labelled("stage", s.Namespace))
	s.LabelNamespace("stage", s.Namespace)
	s.release("shop", "1.1.0")
	s.rest("shop")
	s.isHeldBy("ClusterReleaseQuarantine " + q.Name)
	s.LabelNamespace("stage", "")
	s.rest("shop")
	s.takes()
}

func TestRecallThatCannotBeEvaluatedHolds(t *testing.T) {
	s := obeying(openAlone(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)) // it selects all namespaces
	q := s.recall(t, "1.1.0", &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "kubernetes.io/metadata.name", Operator: "Is", Values: []string{s.Namespace}}}})
	s.release("shop", "1.1.0")
	s.rest("shop")
	s.isHeldBy("ClusterReleaseQuarantine " + q.Name)
}

func TestLabelOfANamespaceWakesTheRolloutsOfRecalls(t *testing.T) {
	s := openObeying(t)
	s.LabelNamespace("stage", s.Namespace)
	s.recall(t, "1.1.0", labelled("stage", s.Namespace))
	s.play(t, testPlane.RESTConfig())
	s.release("shop", "1.1.0")
	s.Eventually(func() []v1alpha1.CandidateHold { return s.holdsOf("shop") }).Should(HaveLen(1))
	s.LabelNamespace("stage", "")
	s.comesTo("shop", promoted{2, "1.1.0", v1alpha1.BakeDeploying})
}

func TestNewRecallWakesTheRolloutsThatKnowTheRelease(t *testing.T) {
	s := openObeying(t)
	s.Add(fixture.MakeGate("manual", "shop").Closed().Obj())
	s.release("shop", "1.1.0")
	s.rest("shop")
	s.play(t, testPlane.RESTConfig())
	s.recall(t, "1.1.0", labelled("kubernetes.io/metadata.name", s.Namespace))
	s.Eventually(func() []v1alpha1.CandidateHold { return s.holdsOf("shop") }).Should(ContainElement(HaveField("Reason", v1alpha1.QuarantinedReason)))
}

func TestQuarantineThatIsBeingDeletedHoldsNothing(t *testing.T) {
	s := openObeying(t)
	q := quarantineOfTag("1.1.0")
	q.Finalizers = []string{"example.com/slow"}
	s.Add(q)
	s.release("shop", "1.1.0")
	s.rest("shop")
	s.isHeldBy("ReleaseQuarantine bad")
	s.Expect(s.Delete(s.Ctx, q)).To(Succeed())
	s.rest("shop")
	s.takes()
	s.Merge(q, `{"metadata":{"finalizers":null}}`)
}

func TestQuarantineHoldsUntilExactlyItsEnd(t *testing.T) {
	s := openObeying(t)
	q := quarantineOfTag("1.1.0")
	q.Spec.Until = &metav1.Time{Time: s.Clock.Now().Add(time.Hour)}
	s.Add(q)
	s.release("shop", "1.1.0")
	s.rest("shop")
	s.isHeldBy("ReleaseQuarantine bad")
	s.Expect(s.holdsOf("shop")[0].Until.Time).To(BeTemporally("==", q.Spec.Until.Time))
	s.Expect(s.reconcile("shop").RequeueAfter).To(Equal(time.Hour))
	s.Pass(time.Hour - time.Nanosecond)
	s.rest("shop")
	s.Expect(s.history("shop")).To(HaveLen(1))
	s.Pass(time.Nanosecond)
	s.rest("shop")
	s.takes()
}

// TestQuarantineThatCannotBeDecodedHolds: a typing error does not cancel it.
func TestQuarantineThatCannotBeDecodedHolds(t *testing.T) {
	s := openObeying(t)
	odd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.ReleaseQuarantineKind,
		"metadata": map[string]any{"name": "bad", "namespace": s.Namespace},
		"spec":     map[string]any{"image": "registry.example.com/shop", "tags": []any{"1.1.0"}, "until": oddTime},
	}}
	s.Expect(s.Create(s.Ctx, odd)).To(Succeed())
	s.play(t, testPlane.RESTConfig())
	s.release("shop", "1.1.0")
	s.Eventually(func() []v1alpha1.CandidateHold { return s.holdsOf("shop") }).Should(ConsistOf(HaveField("Reason", v1alpha1.QuarantinedReason)))
	s.Expect(s.history("shop")).To(HaveLen(1))
	s.Expect(s.Events.All()).To(ContainElement(And(HaveField("On", "bad"), HaveField("Reason", v1alpha1.UnreadableReason))))
	s.Expect(s.Delete(s.Ctx, odd)).To(Succeed())
	s.comesTo("shop", promoted{2, "1.1.0", v1alpha1.BakeDeploying})
}

// TestQuarantineWithoutItsFirstFailureHoldsNothing: the controller died before it wrote the
// failure. The next one does.
func TestQuarantineWithoutItsFirstFailureHoldsNothing(t *testing.T) {
	s := openReporting(t)
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		if write == "patch ReleaseQuarantine/status "+quarantineOf("1.1.0") {
			return fixture.Fault{Err: fixture.ErrDead, Fatal: true}
		}
		return fixture.Fault{}
	}
	s.failsNow()
	s.reconcile("shop")
	s.Expect(s.Wire.Dead()).To(BeTrue())
	s.Expect(s.badQuarantine().Status).To(Equal(v1alpha1.ReleaseQuarantineStatus{}))
	s.Wire = &fixture.Wire{}
	s.restart()
	s.addCart()
	s.Expect(s.history("cart")[0].Tag).To(Equal("2.0.0"))
	s.rest("shop")
	s.Expect(s.known()).To(Equal("Held #2"))
}

func setImage(scan client.Object, image string) { scan.(*imagev1.ImageRepository).Spec.Image = image }
