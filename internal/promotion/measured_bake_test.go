// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
)

// measured returns a check that has a good measurement of a time, and counts.
func measured(at time.Time, good, bad int32) *v1alpha1.HealthCheck {
	c := check("errors").Prometheus("up", "value == 1.0").Healthy().Measured(at, "0.002", v1alpha1.MeasurementGood).Obj()
	c.Status.Good, c.Status.Bad = good, bad
	return c
}

// bakedWith returns a bake of an hour that began at eleven, with a check that was reset.
func bakedWith(c *v1alpha1.HealthCheck) *situation {
	s := given(baking().BakeTime(time.Hour).SelectAllChecks()).targets(applied("apps"))
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.ResetAnnotationPrefix+string(s.input.Rollout.UID), evidence.ResetMark(s.input.Rollout.Current(), nil))
	s.input.Health.Checks = []v1alpha1.HealthCheck{*c}
	return s
}

// An application of which every second answer is an error is never bad three times in a
// row, and is not healthy.
func TestBakeWithTooManyBadMeasurementsFails(t *testing.T) {
	recovering := bakedWith(measured(noon, 15, 15))
	recovering.input.Rollout.Status.History[0].Recovery = v1alpha1.RecoveryFromFailure
	for name, test := range map[string]struct {
		given  *situation
		action promotion.Action
		says   string
	}{
		"half of them": {bakedWith(measured(noon, 15, 15)), promotion.FailBake, "HealthCheck shop-prod/errors: 15 of 30 measurements were bad, which is more than a fifth"},
		"a fifth":      {bakedWith(measured(noon, 24, 6)), promotion.FinishBake, "applied and healthy (1 HealthCheck: errors 0.002 (6 of 30 bad)) for the bake time of 1h0m0s"},
		"half of them, of a promotion that cannot fail": {recovering, promotion.FinishBake, "applied and healthy (1 HealthCheck: errors 0.002 (15 of 30 bad)) for the bake time of 1h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, test.action, d.Action)
			diff(t, test.says, d.Message)
			if d.Action == promotion.FailBake {
				diff(t, v1alpha1.CauseHealthCheckFailed, d.Cause)
			}
		})
	}
}

// Whoever measures may be away, and then nobody says that the check is not Healthy any more.
func TestMeasurementsThatStopProveNothing(t *testing.T) {
	fresh := promotion.Decide(bakedWith(measured(noon.Add(-2*time.Minute), 5, 0)).in())
	diff(t, promotion.FinishBake, fresh.Action)
	old := promotion.Decide(bakedWith(measured(noon.Add(-10*time.Minute), 5, 0)).in())
	diff(t, promotion.Wait, old.Action)
	diff(t, "the bake time stands still since 2026-03-02T12:00:00Z; waiting for HealthCheck shop-prod/errors", old.Message)
	early := promotion.Decide(bakedWith(measured(noon.Add(-15*time.Minute), 5, 0)).at(noon.Add(-14 * time.Minute)).in())
	diff(t, noon.Add(-15*time.Minute).Add(3*30*time.Second+time.Minute+instant), early.RecheckAt)
}

// A check that is measured once an hour says nothing about a bake of ten minutes.
func TestCheckThatIsMeasuredTooSeldomHoldsReleases(t *testing.T) {
	c := measured(noon, 1, 0)
	c.Spec.Interval = &metav1.Duration{Duration: time.Hour}
	for _, test := range []struct {
		bake time.Duration
		want []string
	}{{10 * time.Minute, []string{v1alpha1.HealthCheckInvalidReason}}, {time.Hour, []string{}}} {
		r := rollout().BakeTime(test.bake).Ledger("1.0.0", "1.1.0").SelectAllChecks().History(entry("1.0.0").Succeeded())
		s := given(r)
		s.input.Health.Checks = []v1alpha1.HealthCheck{*c}
		diff(t, map[string][]string{"1.1.0": test.want}, reasons(promotion.Decide(s.in())))
	}
}
