// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// measured returns the metrics of Rollouts that are not zero, and the count of a
// histogram.
func (s *testEnv) measured() map[string]float64 {
	registry := prometheus.NewPedanticRegistry()
	s.Expect(registry.Register(s.reconciler.Metrics)).To(Succeed())
	families, err := registry.Gather()
	s.Expect(err).NotTo(HaveOccurred())
	all := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "rollout_")
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			all[name] = valueOf(metric)
		}
	}
	maps.DeleteFunc(all, func(_ string, value float64) bool { return value == 0 })
	return all
}

func valueOf(metric *dto.Metric) float64 {
	if histogram := metric.GetHistogram(); histogram != nil {
		return float64(histogram.GetSampleCount())
	}
	return metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
}

func TestMetricsInTheLifeOfARollout(t *testing.T) {
	s := open(t, shopWith(baked(), "1.0.0", fixture.MakeHealthCheck("smoke").Healthy().Obj())...)
	s.reconciler.Metrics = metrics.NewRollouts(s.Clock.Now)
	want := map[string]float64{}
	expect := func(step string, changes map[string]float64) {
		t.Helper()
		maps.Copy(want, changes)
		maps.DeleteFunc(want, func(_ string, value float64) bool { return value == 0 })
		s.Expect(s.measured()).To(Equal(want), step)
	}

	s.rest("shop")
	expect("promoted", map[string]float64{
		"promotions_started_total automatic": 1, "promotion_wait_seconds automatic": 1,
		"rollouts Deploying True": 1, "targets Pending": 2,
	})
	s.deployAndBake("shop")
	expect("baked", map[string]float64{
		"promotions_total Succeeded": 1, "deploy_duration_seconds Succeeded": 1, "bake_duration_seconds Succeeded": 1,
		"rollouts Deploying True": 0, "rollouts Succeeded True": 1, "targets Pending": 0, "targets Applied": 2,
	})

	s.Add(fixture.MakeGate("approval", "shop").Closed().Obj())
	s.release("shop", "1.1.0")
	s.rest("shop")
	s.Pass(time.Hour)
	expect("waiting for approval", map[string]float64{
		"blocked SomeGatesBlocking": 1, "blocked_seconds_total SomeGatesBlocking": 3600,
	})

	s.Remove(&v1alpha1.RolloutGate{}, "approval")
	s.Wire.Fail = func(int, string, client.Object) fixture.Fault {
		return fixture.Fault{Err: apierrors.NewConflict(schema.GroupResource{Resource: "rollouts"}, "shop", nil)}
	}
	s.reconcile("shop")
	expect("approved, but not stored: nothing has happened", nil)

	s.Wire.Fail = nil
	s.fail()
	expect("approved, and failed", map[string]float64{
		"promotions_started_total automatic": 2, "promotion_wait_seconds automatic": 2,
		"promotions_total Failed": 1, "deploy_duration_seconds Failed": 1,
		"blocked SomeGatesBlocking": 0, "rollouts Succeeded True": 0, "rollouts Failed False": 1,
	})

	s.pinTo("1.0.0")
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.deployAndBake("shop")
	expect("rolled back by hand; what failed before is held by the pin", map[string]float64{
		"promotions_started_total manual": 1, "promotions_total Succeeded": 2, "deploy_duration_seconds Succeeded": 2,
		"bake_duration_seconds Succeeded": 2, "restore_duration_seconds": 1,
		"rollouts Failed False": 0, "rollouts Succeeded True": 1,
		"blocked Pinned": 1, "blocked_seconds_total Pinned": 600,
	})

	s.Change(fixture.MakeRollout("shop").Obj(), func(o client.Object) { o.(*v1alpha1.Rollout).Spec.Suspend = true })
	s.reconcile("shop")
	s.Pass(time.Hour)
	expect("suspended: what was counted stays, and no time passes", map[string]float64{
		"rollouts Succeeded True": 0, "targets Applied": 0, "blocked Pinned": 0,
	})
	s.Change(fixture.MakeRollout("shop").Obj(), func(o client.Object) { o.(*v1alpha1.Rollout).Spec.Suspend = false })
	s.rest("shop")
	expect("resumed", map[string]float64{"rollouts Succeeded True": 1, "targets Applied": 2, "blocked Pinned": 1})
	s.Remove(&v1alpha1.Rollout{}, "shop")
	s.reconcile("shop")
	expect("deleted", map[string]float64{"rollouts Succeeded True": 0, "targets Applied": 0, "blocked Pinned": 0})
}

func TestMetricsAreExactWhereverTheControllerDies(t *testing.T) {
	s := open(t, shopWith(baked(), "1.0.0", fixture.MakeHealthCheck("smoke").Healthy().Obj())...)
	s.reconciler.Metrics = metrics.NewRollouts(s.Clock.Now)
	s.deploy("shop")
	s.restart() // a new process counts from what it sees
	s.reconciler.Metrics = metrics.NewRollouts(s.Clock.Now)
	s.Pass(10 * time.Minute)
	s.rest("shop")
	s.Expect(s.measured()).To(Equal(map[string]float64{
		"promotions_total Succeeded": 1, "bake_duration_seconds Succeeded": 1, "rollouts Succeeded True": 1, "targets Applied": 2,
	}))
}
