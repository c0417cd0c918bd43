// SPDX-License-Identifier: Apache-2.0

package clustergate

import (
	"context"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cache"
	"github.com/fluxrollouts/rollout-controller/test/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// gated is an env in which the controller follows one gate.
type gated struct {
	*env.Env
	gate *v1alpha1.ClusterRolloutGate
}

func follow(t *testing.T, gate *v1alpha1.ClusterRolloutGate) *gated {
	t.Helper()
	e := env.Open(t, testClient, env.Kinds()...)
	s := &gated{e, gate}
	gate.Name += "-" + e.Namespace
	e.Expect(e.Create(e.Ctx, gate)).To(Succeed())
	t.Cleanup(func() { _ = e.Delete(context.WithoutCancel(e.Ctx), gate) })
	mgr := e.NewManager(testPlane.RESTConfig(), env.Scheme(), cache.Options(cache.Setting{}))
	r := &Reconciler{Client: mgr.GetClient(), Now: time.Now}
	e.Expect(r.SetupWithManager(mgr, controller.Options{})).To(Succeed())
	e.Run(t, mgr)
	return s
}

type seen struct {
	Matching int32
	Reason   string
	Message  string
	Kstatus  status.Status
}

func (s *gated) shown() seen {
	now := &v1alpha1.ClusterRolloutGate{}
	s.Expect(s.Get(s.Ctx, client.ObjectKeyFromObject(s.gate), now)).To(Succeed())
	ready := apimeta.FindStatusCondition(now.Status.Conditions, v1alpha1.ReadyCondition)
	if ready == nil {
		return seen{}
	}
	s.CheckConditions(now)
	stored, err := s.Stored(v1alpha1.ClusterRolloutGateKind, client.ObjectKeyFromObject(s.gate))
	s.Expect(err).NotTo(HaveOccurred())
	return seen{now.Status.MatchingRollouts, ready.Reason, ready.Message, s.Kstatus(stored)}
}

func TestGateCountsTheRolloutsThatItSelects(t *testing.T) {
	gate := fixture.MakeClusterGate("prod").Selecting(map[string]string{"team": "shop"}).Obj()
	s := follow(t, gate)
	s.LabelNamespace("gated", s.Namespace)
	s.Merge(s.gate, `{"spec":{"namespaceSelector":{"matchLabels":{"gated":"`+s.Namespace+`"}}}}`)
	s.Eventually(s.shown).WithTimeout(fixture.Patience).Should(Equal(seen{0, v1alpha1.RolloutsSelectedReason, "selects 0 Rollouts", status.CurrentStatus}))

	shop := fixture.MakeRollout("shop").Obj()
	shop.Labels = map[string]string{"team": "shop"}
	s.Add(shop, fixture.MakeRollout("other").Obj())
	s.Eventually(s.shown).WithTimeout(fixture.Patience).Should(Equal(seen{1, v1alpha1.RolloutsSelectedReason, "selects 1 Rollout", status.CurrentStatus}))

	s.LabelNamespace("gated", "")
	s.Eventually(s.shown).WithTimeout(fixture.Patience).Should(HaveField("Matching", int32(0)))
}

// A typing error must not open a gate.
func TestGateWithASelectorThatCannotBeUsedSelectsEverythingAndSaysSo(t *testing.T) {
	gate := fixture.MakeClusterGate("prod").Obj()
	gate.Spec.RolloutSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "not a value"}}
	s := follow(t, gate)
	s.Add(fixture.MakeRollout("shop").Obj())
	s.Eventually(s.shown).WithTimeout(fixture.Patience).Should(And(
		HaveField("Matching", int32(1)), HaveField("Reason", v1alpha1.InvalidSelectorReason), HaveField("Kstatus", status.FailedStatus),
		HaveField("Message", HavePrefix("it selects everything: spec.rolloutSelector cannot be used: "))))

	s.Merge(s.gate, `{"spec":{"rolloutSelector":null}}`)
	s.Eventually(s.shown).WithTimeout(fixture.Patience).Should(Equal(seen{1, v1alpha1.RolloutsSelectedReason, "selects 1 Rollout", status.CurrentStatus}))
}
