// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cache/expectations"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func (s *testEnv) mirror() *v1alpha1.RolloutGate {
	gate := &v1alpha1.RolloutGate{}
	s.Expect(s.Get(s.Ctx, s.Key("shop-holds"), gate)).To(Succeed())
	return gate
}

// kuberik's dashboard shows a release as one that may go unless a RolloutGate that is in the
// status holds it.
func TestWhatOnlyAnEnvironmentHoldsLooksHeldToClientsOfGates(t *testing.T) {
	s := openEnvironments(t, production())
	s.stagingHas(there("1.0.0").Succeeded())
	s.knows("1.1.0")
	s.rest("shop")
	gate := s.mirror()
	s.Expect(*gate.Spec.AllowedVersions).To(BeEmpty())
	s.Expect(gate.RolloutName()).To(Equal("shop"))
	s.Expect(metav1.IsControlledBy(gate, s.rollout("shop"))).To(BeTrue())
	s.Expect(s.rollout("shop").Status.Gates).To(ContainElement(And(HaveField("Name", gate.Name), HaveField("AllowedVersions", BeEmpty()))))
	s.Wire.Forget()
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(BeEmpty())

	s.Change(gate, func(o client.Object) { o.(*v1alpha1.RolloutGate).Spec.AllowedVersions = &[]string{"1.1.0"} })
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.0.0"), "what somebody writes there counts for nothing")
	s.Expect(*s.mirror().Spec.AllowedVersions).To(BeEmpty())

	s.Change(gate, func(o client.Object) { o.(*v1alpha1.RolloutGate).OwnerReferences[0].UID = "of-a-rollout-that-is-gone" })
	s.stagingHas(there("1.1.0").Succeeded())
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.1.0"), "nor does what it said before hold anything")
	s.Expect(apierrors.IsNotFound(s.Get(s.Ctx, s.Key("shop-holds"), gate))).To(BeTrue())
}

func TestWhatFailedBeforeLooksHeldToClientsOfGates(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Obj())...)
	s.deployAndBake("shop")
	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.checkFails("web", "down", s.Clock.Now())
	s.rest("shop")
	s.pinTo("1.0.0")
	s.deployAndBake("shop")
	s.release("shop", "1.2.0")
	s.rest("shop")
	s.Expect(*s.mirror().Spec.AllowedVersions).To(Equal([]string{"1.2.0"}))
}

// A gate of the user's with that name stays as it is, and counts.
func TestGateOfAUserIsNoMirror(t *testing.T) {
	s := openEnvironments(t, production())
	s.Add(fixture.MakeGate("shop-holds", "shop").Closed().Obj())
	s.stagingHas(there("1.0.0").Succeeded())
	s.knows("1.1.0")
	s.rest("shop")
	s.Expect(s.mirror().Spec.AllowedVersions).To(BeNil())
	s.Expect(s.rollout("shop").Status.ReleaseCandidates[0].Holds).To(ContainElement(HaveField("Reason", v1alpha1.SomeGatesBlockingReason)))
}

// TestMirrorIsDeletedOnce: the cache may show it for a while.
func TestMirrorIsDeletedOnce(t *testing.T) {
	g := NewWithT(t)
	gate, deletions := &v1alpha1.RolloutGate{}, 0
	gate.Namespace, gate.Name, gate.UID = "shop", "shop-holds", "a"
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(gate).Build(), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			deletions++
			return c.Delete(ctx, o, options...)
		},
	})
	writes := &expectations.Versions{}
	for range 3 {
		g.Expect(mirrorWriter{c, writes}.update(t.Context(), gate, nil)).To(Succeed())
	}
	g.Expect(deletions).To(Equal(1))
}
