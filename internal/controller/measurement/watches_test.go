// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cache"
	"github.com/fluxrollouts/rollout-controller/internal/shard"
	"github.com/fluxrollouts/rollout-controller/test/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// running replaces the reconciler with one that a manager runs. Time still passes by the
// clock of the test.
func (s *testEnv) running() { s.runningShard(nil) }

// runningShard is running for the objects that a selector selects; nil selects all.
func (s *testEnv) runningShard(selector labels.Selector) {
	s.stop()
	mgr := s.NewManager(testPlane.RESTConfig(), env.Scheme(), cache.Options(cache.Setting{Rollouts: selector}))
	own, err := shard.New(mgr, ctrlcache.New, selector, map[string]ctrlcache.Config{s.Namespace: {}})
	s.Expect(err).NotTo(HaveOccurred())
	s.reconciler = s.newReconciler(mgr.GetClient())
	s.reconciler.Shard = own
	s.Expect(s.reconciler.SetupWithManager(s.Ctx, mgr, controller.Options{SkipNameValidation: ptr.To(true)})).To(Succeed())
	s.stop = s.Run(s.t, mgr)
}

func TestEventsLeadToTheEndOfSharing(t *testing.T) {
	s := open(t, rollout("shop"), rollout("cart"), perRelease())
	s.reset("errors", "shop")
	s.reset("errors", "cart")
	s.running()
	problem := func() string { return s.problem("errors") }
	s.Eventually(problem, 10*time.Second).Should(Equal(shared))
	s.selecting("cart", "cart")
	s.Eventually(problem, 10*time.Second).Should(BeEmpty(), "the Rollout selects others")
	s.selectingIn("cart", map[string]string{"measured": "yes"})
	s.LabelNamespace("measured", "yes")
	s.Eventually(problem, 10*time.Second).Should(Equal(shared), "it selects the namespace")
	s.LabelNamespace("measured", "no")
	s.Eventually(problem, 10*time.Second).Should(BeEmpty(), "the namespace has another label")
}

func TestEventsLeadToMeasurementsAndToTheirEnd(t *testing.T) {
	s := open(t, rollout("shop"), errorRate().Obj(), fixture.MakeHealthCheck("alert").Class("prometheus-alert").Obj())
	s.running()
	s.Eventually(func() int64 { return s.check("errors").Status.ObservedGeneration }, 10*time.Second).Should(Equal(int64(1)))
	s.Expect(s.planned()).To(BeZero())

	s.reset("errors", "shop")
	s.Eventually(s.planned, 10*time.Second).Should(Equal(1), "the reset leads to a measurement")
	s.Eventually(func() v1alpha1.HealthStatus {
		s.clock.Step(time.Second) // until the timer of the pool is due
		return s.check("errors").Status.Status
	}, 20*time.Second, 20*time.Millisecond).Should(Equal(healthy), "the result leads to a pass")

	s.ends("shop", v1alpha1.BakeSucceeded)
	s.Eventually(s.planned, 10*time.Second).Should(BeZero(), "the end of the promotion ends it")

	s.Change(errorRate().Obj(), func(o client.Object) { o.(*v1alpha1.HealthCheck).Spec.Prometheus.Condition = "value <=" })
	s.Eventually(func() string { return s.check("errors").Status.Problem }, 10*time.Second).ShouldNot(BeEmpty())
	s.Change(errorRate().Obj(), func(o client.Object) {
		o.(*v1alpha1.HealthCheck).Spec = fixture.MakeHealthCheck("errors").Class("prometheus-alert").Obj().Spec
	})
	s.Eventually(func() bool { return s.reconciler.states.has(s.Key("errors")) }, 10*time.Second).Should(BeFalse(), "it has another class")
	s.Expect(s.check("alert").Status).To(BeZero())
}
