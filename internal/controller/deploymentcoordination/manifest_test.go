// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"testing"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// apply writes a Deployment as Flux does: by server-side apply, which takes over the
// fields that the manifest sets.
func (s *testEnv) apply(name string, paused *bool, edits ...func(*appsv1.Deployment)) {
	applied, err := toUnstructured(deployment(s.Namespace, name, edits...))
	s.Expect(err).NotTo(HaveOccurred())
	delete(applied.Object, "status")
	if paused != nil {
		s.Expect(unstructured.SetNestedField(applied.Object, *paused, "spec", "paused")).To(Succeed())
	}
	applied.SetCreationTimestamp(metav1.Time{})
	s.Expect(s.Apply(s.Ctx, client.ApplyConfigurationFromUnstructured(applied),
		client.FieldOwner("kustomize-controller"), client.ForceOwnership)).To(Succeed())
}

func contested(name string) gomegatypes.GomegaMatcher {
	return And(
		HaveField("Reason", coordinationv1.PausedByManifestEvent), HaveField("Type", "Warning"),
		HaveField("Message", And(ContainSubstring(name), ContainSubstring("kustomize-controller"))))
}

// A manifest that sets spec.paused overwrites it each time it is applied. As long as
// there is nothing to roll out, the controller accepts that.
func TestManifestThatSetsPausedIsNotOverwrittenWhileIdle(t *testing.T) {
	s := three(t)
	off := false
	s.apply("b", &off)
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"b"}))
	s.Expect(count(s.writes(), "patch Deployment b")).To(Equal(1), "it is not marked as held any more")
	s.Expect(s.deployment("b").Annotations).NotTo(HaveKey(coordinationv1.HeldByAnnotation))
	s.Expect(s.Events.Take()).To(And(Not(BeEmpty()), HaveEach(contested(s.Namespace+"/b"))))

	s.apply("b", &off)
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"b"}))
	s.Expect(s.writes()).To(BeEmpty())
	s.Expect(s.Events.Take()).To(BeEmpty())
}

// While it waits, it is paused once for each time that the manifest is applied.
func TestManifestThatSetsPausedCannotTakeATurn(t *testing.T) {
	s := three(t)
	s.edit("a", version("2"))
	s.rest()
	s.writes()
	off := false
	for i := range 3 {
		s.apply("b", &off, version("2"))
		s.Expect(s.unpaused()).To(Equal([]string{"a", "b"}))
		s.rest()
		s.Expect(s.unpaused()).To(Equal([]string{"a"}))
		s.Expect(count(s.writes(), "patch Deployment b")).To(Equal(1))
		s.Expect(s.Events.Take()).To(ContainElement(contested(s.Namespace+"/b")), "round %d", i)
	}
	s.finishes("a")
	s.rest()
	s.stays("b")
}

// An update of the whole Deployment without spec.paused removes the field, and then it
// has no owner. The first time is not a conflict.
func TestRepeatedRemovalOfPausedIsNoticed(t *testing.T) {
	s := three(t, resume)
	s.edit("a", version("2"))
	s.rest()
	for i := range 3 {
		whole := deployment(s.Namespace, "b", version("2"))
		whole.ResourceVersion = s.deployment("b").ResourceVersion
		s.Expect(s.Update(s.Ctx, whole)).To(Succeed())
		s.Expect(s.unpaused()).To(Equal([]string{"a", "b", "c"}))
		s.Events.Take()
		s.rest()
		s.Expect(s.unpaused()).To(Equal([]string{"a", "c"}))
		removed := And(HaveField("Reason", coordinationv1.PausedByManifestEvent),
			HaveField("Message", ContainSubstring("spec.paused of "+s.Namespace+"/b was removed")))
		if i == 0 {
			s.Expect(s.Events.Take()).NotTo(ContainElement(removed))
			continue
		}
		s.Expect(s.Events.Take()).To(ContainElement(removed), "round %d", i)
	}
}

// A manifest that leaves the field out causes no conflict, and the controller owns only
// two fields.
func TestManifestThatDoesNotSetPausedLeavesItAsItIs(t *testing.T) {
	s := open(t)
	s.apply("a", nil)
	s.finishes("a")
	s.coordinate("shop")
	s.rest()
	s.Expect(s.unpaused()).To(BeEmpty())
	s.writes()
	s.reported()
	s.apply("a", nil)
	s.rest()
	s.Expect(s.unpaused()).To(BeEmpty())
	s.Expect(s.writes()).To(BeEmpty())
	s.Expect(s.reported()).To(BeEmpty())

	for _, entry := range s.deployment("a").ManagedFields {
		if entry.Manager == "rollout-controller" {
			s.Expect(string(entry.FieldsV1.GetRawBytes())).To(Equal(
				`{"f:metadata":{"f:annotations":{".":{},"f:` + coordinationv1.HeldByAnnotation + `":{}}},"f:spec":{"f:paused":{}}}`))
		}
	}
}
