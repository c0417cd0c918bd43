// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"errors"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// fromElsewhere returns a Kustomization of another namespace that consumes the
// OCIRepository shop.
func fromElsewhere() client.Object {
	return fixture.MakeKustomization("shop").InNamespace("b").FromNamespace(fixture.Namespace).Obj()
}

// observed returns what is gathered of the only target.
func observed(t *testing.T, g Gatherer, rollout *v1alpha1.Rollout) content.Target {
	t.Helper()
	s := g.Gather(t.Context(), rollout, fixture.Noon)
	NewWithT(t).Expect(s.Err).NotTo(HaveOccurred())
	NewWithT(t).Expect(s.Targets.All).To(HaveLen(1))
	return s.Targets.All[0]
}

func TestConsumersAreGathered(t *testing.T) {
	named := running()
	named.Status.Targets = []v1alpha1.TargetStatus{{
		Kind: "OCIRepository", Namespace: fixture.Namespace, Name: "shop", Version: "1.0.0", State: v1alpha1.TargetApplied,
		Reason: v1alpha1.TargetConsumerElsewhere, Message: "Kustomization c/shop applies it",
	}}
	for name, tt := range map[string]struct {
		gatherer Gatherer
		rollout  *v1alpha1.Rollout
		objects  []client.Object
		reason   v1alpha1.TargetReason
		message  types.GomegaMatcher
	}{
		"none": {
			rollout: running(), reason: v1alpha1.TargetNoConsumer, message: HavePrefix("no Kustomization in this namespace applies it"),
		},
		"one of another namespace": {
			rollout: running(), objects: []client.Object{fromElsewhere()},
			reason: v1alpha1.TargetConsumerElsewhere, message: HavePrefix("Kustomization b/shop applies it from another namespace"),
		},
		"one of another namespace that is gone": {
			rollout: named, reason: v1alpha1.TargetNoConsumer, message: HavePrefix("no Kustomization in this namespace applies it"),
		},
		"of other namespaces, to whose sources Flux must not refer": {
			gatherer: Gatherer{NoCrossNamespaceRefs: true}, rollout: running(), objects: []client.Object{fromElsewhere()},
			reason: v1alpha1.TargetNoConsumer, message: HavePrefix("no Kustomization in this namespace applies it"),
		},
		"of other namespaces, which only the controller reads": {
			gatherer: Gatherer{OneNamespace: true}, rollout: named,
			reason: v1alpha1.TargetConsumerElsewhere, message: Equal("Kustomization c/shop applies it"),
		},
		"none, before there is a history": {
			gatherer: Gatherer{OneNamespace: true}, rollout: fixture.MakeRollout("shop").FirstRelease(v1alpha1.FirstReleaseApplied).Obj(),
			reason: v1alpha1.TargetNoConsumer, message: HavePrefix("no Kustomization in this namespace applies it"),
		},
		"of other namespaces, which were read here too": {
			gatherer: Gatherer{OneNamespace: true}, rollout: named, objects: []client.Object{fromElsewhere()},
			reason: v1alpha1.TargetConsumerElsewhere, message: HavePrefix("Kustomization b/shop applies it from another namespace"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			reader := readerOf(t, append(shop(), tt.objects...)...)
			tt.gatherer.Client, tt.gatherer.Live = reader, reader
			seen := observed(t, tt.gatherer, tt.rollout)
			NewWithT(t).Expect(seen.PulledOnly).To(BeTrue())
			NewWithT(t).Expect(seen.Reason).To(Equal(tt.reason))
			NewWithT(t).Expect(seen.Message).To(tt.message)
		})
	}
}

// Before a bake ends, the consumers are counted among what was read live.
func TestConsumerThatIsGoneIsNotConfirmed(t *testing.T) {
	g := NewWithT(t)
	consumer := fixture.MakeKustomization("shop").Applied(fixture.Revision("1.0.0")).Ready().Obj()
	gatherer := Gatherer{Client: readerOf(t, append(shop(), consumer)...), Live: readerOf(t, shop()...)}
	s := gatherer.Gather(t.Context(), running(), fixture.Noon)
	g.Expect(s.Targets.All).To(HaveEach(HaveField("PulledOnly", false)))
	g.Expect(gatherer.Confirm(t.Context(), &s)).To(Succeed())
	g.Expect(s.Targets.All).To(ConsistOf(And(HaveField("PulledOnly", true), HaveField("Reason", v1alpha1.TargetNoConsumer))))
}

func TestConsumersThatCannotBeReadAreAProblem(t *testing.T) {
	g := NewWithT(t)
	reader := readerOf(t, shop()...)
	g.Expect(reader.Fail(&kustomizev1.KustomizationList{}, errors.New("broken"))).To(Succeed())
	s := Gatherer{Client: reader, Live: reader}.Gather(t.Context(), running(), fixture.Noon)
	g.Expect(s.Targets.Problem).To(HaveField("Message", "the targets could not be read"))
}
