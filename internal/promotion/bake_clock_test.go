// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// bakes returns a situation in which 1.1.0 bakes since eleven with one HealthCheck, whose
// clock stands still since a time, and has stood still for a while before.
func bakes(bake time.Duration, check *fixture.HealthCheckBuilder, since time.Time, before time.Duration) *situation {
	r := baking().BakeTime(bake).SelectAllChecks().Obj()
	if !since.IsZero() {
		r.Status.History[0].UnprovenSince = wireTime(since)
	}
	if before > 0 {
		r.Status.History[0].UnprovenFor = &metav1.Duration{Duration: before}
	}
	s := given(rollout())
	s.input.Rollout = r
	return s.latest("1.1.0").targets(applied("apps")).resetChecks(check)
}

// recordedBy returns the decision, and the newest entry after it.
func recordedBy(t *testing.T, s *situation) (promotion.Decision, v1alpha1.DeploymentHistoryEntry) {
	t.Helper()
	d := promotion.Decide(s.in())
	history, err := promotion.Record(s.in(), d)
	if err != nil {
		t.Fatal(err)
	}
	return d, history[0]
}

// bakeClock is what an entry stores about its clock.
type bakeClock struct {
	since  *metav1.Time
	before time.Duration
}

func clockIn(entry v1alpha1.DeploymentHistoryEntry) bakeClock {
	s := bakeClock{since: entry.UnprovenSince}
	if entry.UnprovenFor != nil {
		s.before = entry.UnprovenFor.Duration
	}
	return s
}

func TestBakeClockCountsHealth(t *testing.T) {
	pending := func() *fixture.HealthCheckBuilder { return check("db").Pending().ChangedAt(noon) }
	healthy := func() *fixture.HealthCheckBuilder { return check("db").Healthy().ChangedAt(noon) }
	for name, test := range map[string]struct {
		given  *situation
		action promotion.Action
		says   string
		again  time.Time
		clock  bakeClock
	}{
		"it stands still from when something is first seen not to be healthy": {
			bakes(2*time.Hour, pending(), never, 0), promotion.Wait,
			"the bake time stands still since 2026-03-02T12:00:00Z; waiting for HealthCheck shop-prod/db",
			noon.Add(time.Minute), bakeClock{since: wireTime(noon)},
		},
		"it stands still beyond the bake time": {
			bakes(time.Hour, pending(), noon.Add(-20*time.Minute), 0), promotion.Wait,
			"the bake time stands still since 2026-03-02T11:40:00Z; waiting for HealthCheck shop-prod/db",
			noon.Add(15*time.Minute + instant), bakeClock{since: wireTime(noon.Add(-20 * time.Minute))},
		},
		"it goes on when all is healthy": {
			bakes(time.Hour, healthy(), noon.Add(-20*time.Minute), 10*time.Minute), promotion.Wait,
			"baking until 2026-03-02T12:30:00Z",
			noon.Add(30 * time.Minute), bakeClock{before: 30 * time.Minute},
		},
		"one good moment after the bake time is no health for the bake time": {
			bakes(30*time.Second, healthy(), eleven.Add(5*time.Second), 0).at(eleven.Add(50 * time.Second)), promotion.Wait,
			"baking until 2026-03-02T11:01:15Z",
			eleven.Add(75 * time.Second), bakeClock{before: 45 * time.Second},
		},
		"it has ended when it has counted the bake time": {
			bakes(time.Hour, healthy(), never, 30*time.Minute).at(noon.Add(30 * time.Minute)), promotion.FinishBake,
			"applied and healthy (1 HealthCheck) for the bake time of 1h0m0s (it stood still for 30m0s, while not everything was healthy)",
			never, bakeClock{before: 30 * time.Minute},
		},
		"a target that waits for Flux again does not stop it": {
			bakes(2*time.Hour, healthy(), never, 0).targets(target("apps", v1alpha1.TargetPending, "")), promotion.Wait,
			"baking until 2026-03-02T13:00:00Z", one, bakeClock{},
		},
		"a target that has become unhealthy does": {
			bakes(2*time.Hour, healthy(), never, 0).targets(unhealthy("apps")), promotion.Wait,
			"the bake time stands still since 2026-03-02T12:00:00Z; Kustomization shop-prod/apps: it is down",
			noon.Add(time.Minute), bakeClock{since: wireTime(noon)},
		},
		"so do HealthChecks that cannot be read": {
			bakes(2*time.Hour, healthy(), never, 0).healthUnreadable(), promotion.Wait,
			"the bake time stands still since 2026-03-02T12:00:00Z; it is broken",
			noon.Add(time.Minute), bakeClock{since: wireTime(noon)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, entry := recordedBy(t, test.given)
			diff(t, test.action, d.Action)
			diff(t, test.says, d.Message)
			diff(t, test.again, d.RecheckAt)
			diff(t, test.clock.before, clockIn(entry).before)
			diff(t, test.clock.since, clockIn(entry).since)
		})
	}
}

// A pod that is replaced, or a node that is drained, is not worth a report.
func TestLullIsNotReported(t *testing.T) {
	for _, test := range []struct {
		after    time.Duration
		reported bool
	}{{0, false}, {time.Minute - instant, false}, {time.Minute, true}} {
		began := eleven.Add(30 * time.Minute)
		s := bakes(2*time.Hour, check("db").Pending().ChangedAt(eleven), began, 0).at(began.Add(test.after))
		diff(t, test.reported, promotion.Decide(s.in()).Overdue)
	}
}

func TestBakeThatGoesOnSaysWhenItEnds(t *testing.T) {
	_, entry := recordedBy(t, bakes(time.Hour, check("db").Healthy(), noon.Add(-20*time.Minute), 0))
	diff(t, "applied and healthy (1 HealthCheck); baking for 1h0m0s, until 2026-03-02T12:20:00Z (it stood still for 20m0s, while not everything was healthy)",
		*entry.BakeStatusMessage)
	again, _ := recordedBy(t, bakes(time.Hour, check("db").Healthy(), never, 20*time.Minute))
	diff(t, noon.Add(20*time.Minute), again.RecheckAt)
}

func TestRetryBeginsAnotherBake(t *testing.T) {
	r := rollout().Ledger("1.1.0").History(entry("1.1.0").Baking(eleven).Failed()).Annotate(retry, "").Obj()
	r.Status.History[0].UnprovenSince, r.Status.History[0].UnprovenFor = wireTime(noon), &metav1.Duration{Duration: time.Minute}
	s := given(rollout())
	s.input.Rollout = r
	d, entry := recordedBy(t, s.latest("1.1.0").targets(applied("apps")))
	diff(t, promotion.Retry, d.Action)
	diff(t, time.Duration(0), clockIn(entry).before)
	diff(t, (*metav1.Time)(nil), clockIn(entry).since)
}

func unhealthy(name string) content.Target {
	t := target(name, v1alpha1.TargetFailed, "it is down")
	t.Reason, t.Unhealthy = v1alpha1.TargetUnhealthy, true
	return t
}

// Somebody is told of a bake that does not end, and of a promotion that cannot fail.
func TestPromotionIsLate(t *testing.T) {
	bakes := func(bake time.Duration, now time.Time) *situation {
		return given(baking().BakeTime(bake).SelectAllChecks()).at(now).targets(applied("apps")).resetChecks(check("db").Pending())
	}
	noData := func() *fixture.HealthCheckBuilder {
		return check("errors").Prometheus("up", "value == 1.0").Pending().Measured(eleven, "", v1alpha1.MeasurementNoData)
	}
	for name, test := range map[string]struct {
		given *situation
		since time.Time
		again time.Time
	}{
		"a bake is late by its own length":   {bakes(10*time.Minute, eleven.Add(20*time.Minute+instant)), eleven.Add(10 * time.Minute), never},
		"and not before":                     {bakes(10*time.Minute, eleven.Add(20*time.Minute)), never, eleven.Add(20*time.Minute + instant)},
		"a long one by a quarter of an hour": {bakes(30*time.Minute, eleven.Add(45*time.Minute+instant)), eleven.Add(30 * time.Minute), never},
		"a promotion that cannot fail is late at the deadline": {
			given(rollout().DeployTimeout(30 * time.Minute).History(entry("1.1.0").Deploying().Recovering())).targets(pending("apps")),
			eleven.Add(30 * time.Minute), never,
		},
		"one that lacks traffic, too": {
			given(deploying().DeployTimeout(30 * time.Minute)).targets(applied("apps")).resetChecks(noData()), eleven.Add(30 * time.Minute), never,
		},
		"one that nothing ends is never late": {given(deploying()).targets(pending("apps")), never, never},
		"a rollback has its own rule": {
			given(rollout().BakeTime(time.Minute).History(entry("1.0.0").Baking(eleven).Back("1.1.0", 7, 5))).targets(pending("apps")), never, never,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, promotion.Wait, d.Action)
			diff(t, test.since, d.LateSince)
			if !test.again.IsZero() {
				diff(t, true, !d.RecheckAt.After(test.again) && d.RecheckAt.After(test.given.in().Now))
			}
		})
	}
}

// The deadline is about being applied and rolled out. Nobody may use the application at
// night, and the release is not the cause.
func TestDeadlineDoesNotWaitForTraffic(t *testing.T) {
	errors := func(results ...v1alpha1.MeasurementResult) *fixture.HealthCheckBuilder {
		c := check("errors").Prometheus("up", "value == 1.0").Pending()
		for _, result := range results {
			c.Measured(eleven, "", result)
		}
		return c
	}
	for name, test := range map[string]struct {
		checks []*fixture.HealthCheckBuilder
		want   promotion.Action
	}{
		"no data so far":        {[]*fixture.HealthCheckBuilder{errors(v1alpha1.MeasurementNoData, v1alpha1.MeasurementNoData)}, promotion.Wait},
		"something was seen":    {[]*fixture.HealthCheckBuilder{errors(v1alpha1.MeasurementNoData, v1alpha1.MeasurementBad)}, promotion.FailBake},
		"nothing was measured":  {[]*fixture.HealthCheckBuilder{errors()}, promotion.FailBake},
		"it is not rolled out":  {[]*fixture.HealthCheckBuilder{errors(v1alpha1.MeasurementNoData), check("shop").Kustomization().Pending()}, promotion.FailBake},
		"it is rolled out":      {[]*fixture.HealthCheckBuilder{errors(v1alpha1.MeasurementNoData), check("shop").Kustomization().Healthy()}, promotion.Wait},
		"Prometheus was silent": {[]*fixture.HealthCheckBuilder{errors(v1alpha1.MeasurementError)}, promotion.FailBake},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(deploying().DeployTimeout(30 * time.Minute)).targets(applied("apps")).resetChecks(test.checks...)
			diff(t, test.want, promotion.Decide(s.in()).Action)
		})
	}
}

// What Flux does not try again fails at once, and not at the deadline.
func TestTargetThatFluxGaveUpFailsAtOnce(t *testing.T) {
	gone := unhealthy("web")
	gone.GaveUp = true
	d := promotion.Decide(given(deploying().DeployTimeout(2 * time.Hour)).targets(gone).in())
	diff(t, promotion.FailBake, d.Action)
	diff(t, v1alpha1.CauseTargetUnhealthy, d.Cause)
	diff(t, "Kustomization shop-prod/web: it is down", d.Message)
	diff(t, promotion.Wait, promotion.Decide(given(deploying()).targets(gone).in()).Action)
}
