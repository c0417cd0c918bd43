// SPDX-License-Identifier: Apache-2.0

package measured_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/measured"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

var now = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)

func baking() *v1alpha1.Rollout {
	return fixture.MakeRollout("shop").History(fixture.MakeEntry("1.4.0").ID(1).At(now).Baking(now)).Obj()
}

// markOf returns the mark of a reset for the current promotion.
func markOf(r *v1alpha1.Rollout) string { return evidence.PromotionID(r.Current()) + "/" }

func TestNextMeasurement(t *testing.T) {
	rollout := baking()
	other := rollout.DeepCopy()
	other.UID = "other"
	query := func() *fixture.HealthCheckBuilder {
		return fixture.MakeHealthCheck("errors").Prometheus("up", "value > 0.0")
	}
	awaited := func() *fixture.HealthCheckBuilder { return query().Mark(rollout, markOf(rollout)) }
	failing := func(reason v1alpha1.MeasuringReason) *v1alpha1.HealthCheck {
		check := awaited().Measured(now, "", v1alpha1.MeasurementError).Problem("in any words").Obj()
		check.Status.Reason = reason
		return check
	}
	for name, tt := range map[string]struct {
		check *v1alpha1.HealthCheck
		plan  string
		after time.Duration // zero if it is not measured
	}{
		"an interval after the newest one": {
			check: awaited().Measured(now.Add(-time.Minute), "1", v1alpha1.MeasurementGood).Measured(now, "1", v1alpha1.MeasurementGood).Obj(),
			plan:  "is measured while a promotion depends on it, every 30s", after: 30 * time.Second,
		},
		"at rest": {
			check: query().Healthy().Measured(now, "1", v1alpha1.MeasurementGood).Obj(),
			plan:  "is not measured, because no promotion depends on it",
		},
		"Unhealthy": {
			check: query().Unhealthy().Measured(now, "0", v1alpha1.MeasurementBad).Obj(),
			plan:  "is measured until it is Healthy, every 1m", after: time.Minute,
		},
		"a problem of the spec": {
			check: awaited().Measured(now, "1", v1alpha1.MeasurementGood).Problem("no such variable").Obj(),
			plan:  "is not measured, because it cannot be measured as it is",
		},
		"a problem that was found": {
			check: failing(v1alpha1.MeasuringProblemFound),
			plan:  "is measured while a promotion depends on it, every 30s", after: 30 * time.Second,
		},
		"a problem after another error": {
			check: failing(v1alpha1.MeasuringNotMeasurable),
			plan:  "is not measured, because it cannot be measured as it is",
		},
		"a reset that has begun": {
			check: query().Mark(rollout, markOf(rollout)+"/begun").Obj(),
			plan:  "is not measured, because no promotion depends on it",
		},
		"for another Rollout": {
			check: query().Mark(other, markOf(rollout)).Obj(),
			plan:  "is not measured for this Rollout, whose promotion does not depend on it. Other Rollouts have reset it as well",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := measured.One(rollout, tt.check)
			g.Expect(got.Plan).To(Equal(tt.plan))
			if tt.after == 0 {
				g.Expect(got.Next).To(BeNil())
				return
			}
			g.Expect(got.Next.Time).To(Equal(now.Add(tt.after)))
		})
	}
}

func TestFirstMeasurementComesAfterTheDelay(t *testing.T) {
	rollout := baking()
	check := fixture.MakeHealthCheck("errors").Prometheus("up", "value > 0.0").Mark(rollout, markOf(rollout)).ChangedAt(now).Obj()
	next := measured.One(rollout, check).Next
	NewWithT(t).Expect(next.Time).To(And(BeTemporally(">=", now.Add(time.Minute)), BeTemporally("<", now.Add(70*time.Second))))
}

func TestOnlyMeasuredChecksAreDescribed(t *testing.T) {
	g := NewWithT(t)
	checks := []v1alpha1.HealthCheck{
		*fixture.MakeHealthCheck("flux").Kustomization().Obj(),
		*fixture.MakeHealthCheck("foreign").Class("prometheus").Obj(),
		*fixture.MakeHealthCheck("smoke").HTTP("https://shop.example.com").Healthy().Message("14 ms").About("1.4.0", "").
			Measured(now, "14", v1alpha1.MeasurementGood).Obj(),
	}
	g.Expect(measured.Of(fixture.MakeRollout("shop").Obj(), checks)).To(Equal([]measured.Check{{
		Namespace: fixture.Namespace, Name: "smoke", Class: "http", Subject: "https://shop.example.com", Condition: "status >= 200 && status < 300",
		Status: v1alpha1.HealthStatusHealthy, Message: "14 ms", Version: "1.4.0",
		Measurements: []v1alpha1.Measurement{{At: metav1.Time{Time: now}, Value: "14", Result: v1alpha1.MeasurementGood}},
		Plan:         "is not measured, because no promotion depends on it",
	}}))
}
