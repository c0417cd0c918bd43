// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// many returns many texts that together have a size of about a megabyte.
func many(prefix string) map[string]string {
	texts := map[string]string{}
	for i := range 8_000 {
		texts[fmt.Sprintf("%s%04d", prefix, i)] = fmt.Sprintf("%0100d", i)
	}
	return texts
}

// TestObjectThatIsTooLargeIsKeptInPart checks that the object and its references
// stay, and that reading it returns an error.
func TestObjectThatIsTooLargeIsKeptInPart(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	labelled := fixture.MakeHealthCheck("laden").Obj()
	labelled.Labels = many("label-")
	annotated := fixture.MakeRollout("laden").Obj()
	annotated.Annotations = many("rollout.kuberik.com/note-")
	selecting := fixture.MakeRollout("laden").Obj()
	selecting.Spec.HealthCheckSelector = &v1alpha1.HealthCheckSelector{MatchLabels: many("label-")}
	gate := fixture.MakeGate("laden", "shop").Obj()
	gate.OwnerReferences = make([]metav1.OwnerReference, 10_000)
	for i := range gate.OwnerReferences {
		gate.OwnerReferences[i].Name = fmt.Sprintf("%0100d", i)
	}
	scan := fixture.MakeScan("laden").Found(slices.Collect(maps.Values(many("")))...).Obj()
	policy := fixture.MakePolicy("laden").Latest("1.0.0").Obj()
	policy.Spec.FilterTags = &imagev1.TagFilter{Pattern: long}
	kustomization := fixture.MakeKustomization("laden").DrivenBy("shop", "VERSION").Substitute("VERSION", long).Obj()
	for name, object := range map[string]client.Object{
		"labels": labelled, "annotations": annotated, "a selector": selecting, "owners": gate, "tags": scan,
		"a pattern": policy, "a variable": kustomization,
	} {
		t.Run(name, func(t *testing.T) {
			g, trimmer := NewWithT(t), new(trimmer)
			for range 2 { // an object may be trimmed more than once
				_, err := trimmer.trim(object)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(object.GetName()).To(Equal("laden"))
				g.Expect(unreadable.Of(object)).To(MatchError(MatchRegexp(
					`^\w+ shop-prod/laden cannot be read: \d+ KiB of it would have to be kept in memory, and at most (16|32|64|640) are; it has long texts or lists: `)))
				g.Expect(new(words).pack(object.DeepCopyObject().(client.Object))).To(BeNumerically("<", 64<<10))
			}
		})
	}
	g := NewWithT(t)
	g.Expect(labelled.Labels).To(HaveKeyWithValue("label-0000", HaveLen(100)), "the first ones are kept")
	g.Expect(gate.RolloutName()).To(Equal("shop"))
	g.Expect(kustomization.Spec.SourceRef).To(Equal(kustomizev1.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: "laden"}))
	g.Expect(policy.Spec.ImageRepositoryRef).To(Equal(fixture.MakePolicy("laden").Obj().Spec.ImageRepositoryRef))
}

// TestObjectThatIsOfAUsualSizeIsNotCut covers a Rollout with the largest status.
func TestObjectThatIsOfAUsualSizeIsNotCut(t *testing.T) {
	g := NewWithT(t)
	rollout := fixture.MakeRollout("shop").Obj()
	rollout.Status.Conditions = []metav1.Condition{{Type: "Any", Message: strings.Repeat("x", 200<<10)}}
	_, err := new(trimmer).trim(rollout)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unreadable.Of(rollout)).To(Succeed())
	g.Expect(rollout.Status.Conditions[0].Message).To(HaveLen(200 << 10))
}

// TestLargeGroupIsNotCut covers a coordination of a thousand Deployments, each with a turn
// and the most templates.
func TestLargeGroupIsNotCut(t *testing.T) {
	g, group := NewWithT(t), &coordinationv1.DeploymentCoordination{}
	group.Namespace, group.Name = "shop", "all"
	for i := range 1_000 {
		name := fmt.Sprintf("shop/deployment-with-a-long-name-%d", i)
		var ready []string
		for j := range 5 {
			ready = append(ready, fmt.Sprintf("%016x", 5*i+j))
		}
		group.Status.Deployments = append(group.Status.Deployments, name)
		group.Status.ActiveDeployments = append(group.Status.ActiveDeployments, name)
		group.Status.DeploymentStates = append(group.Status.DeploymentStates, coordinationv1.DeploymentState{
			Name: name, UID: types.UID(fmt.Sprintf("%036d", i)), LastRolloutStarted: &metav1.Time{}, LastRolloutFinished: &metav1.Time{},
			Template: ready[0], ReadyTemplates: ready,
		})
	}
	_, err := new(trimmer).trim(group)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unreadable.Of(group)).To(Succeed())
}

// TestNamespaceIsNotCutForItsAnnotations matters because nothing reads these
// annotations. A cut would break everything that selects by namespace.
func TestNamespaceIsNotCutForItsAnnotations(t *testing.T) {
	g := NewWithT(t)
	namespace := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
	namespace.Name, namespace.Labels, namespace.Annotations = "shop", map[string]string{"team": "shop"}, many("note-")
	_, err := new(trimmer).trim(namespace)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unreadable.Of(namespace)).To(Succeed())
	g.Expect(namespace.Labels).To(Equal(map[string]string{"team": "shop"}))
}
