// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// A clock that was ahead by a day has stored times that have not come yet. They count as now.
// The next write of the history says so, and changes nothing after that.
func TestTimeOfTheHistoryThatHasNotComeCountsAsNow(t *testing.T) {
	slow := func() *fixture.RolloutBuilder { return offered().ReleaseUpdateInterval(time.Hour) }
	bakes := func() *fixture.RolloutBuilder {
		return offered().BakeTime(time.Hour).DeployTimeout(time.Hour).SelectAllChecks().RollsBack(func(r *v1alpha1.RolloutRollback) { r.Delay = &metav1.Duration{Duration: time.Minute} })
	}
	older := func() *fixture.EntryBuilder { return fixture.MakeEntry("1.2.0").Succeeded() }
	entry := func() *fixture.EntryBuilder { return fixture.MakeEntry("1.3.0") }
	for name, test := range map[string]struct {
		rollout func() *fixture.RolloutBuilder
		at      func(now time.Time) *fixture.EntryBuilder
	}{
		"the interval between promotions": {
			slow, func(now time.Time) *fixture.EntryBuilder { return entry().At(now).Succeeded().BakeEnd(now) },
		},
		"the deadline": {bakes, func(now time.Time) *fixture.EntryBuilder { return entry().At(now).Deploying() }},
		"the deadline after a retry": {bakes, func(now time.Time) *fixture.EntryBuilder {
			return entry().Deploying().Retried(noon.Add(48 * time.Hour)).RetryStart(now)
		}},
		"the bake": {bakes, func(now time.Time) *fixture.EntryBuilder { return entry().At(now).AppliedSince(now).Baking(now) }},
		"a bake that stands still": {bakes, func(now time.Time) *fixture.EntryBuilder {
			return entry().Baking(noon.Add(-time.Minute)).StandsStill(now)
		}},
		"a rollback that is due": {bakes, func(now time.Time) *fixture.EntryBuilder {
			return entry().At(now).Failed().BakeEnd(now).Due(v1alpha1.CauseHealthCheckFailed, now.Add(time.Minute))
		}},
		"a rollback that is running": {bakes, func(now time.Time) *fixture.EntryBuilder { return entry().At(now).Baking(now).Back("1.4.0", 2, 1) }},
	} {
		t.Run(name, func(t *testing.T) {
			at := func(now time.Time) promotion.Input {
				return given(test.rollout().History(test.at(now), older())).resetChecks(fixture.MakeHealthCheck("smoke").Healthy()).in()
			}
			ahead, now := at(noon.Add(24*time.Hour)), at(noon)
			d, want := promotion.Decide(ahead), promotion.Decide(now)
			diff(t, want, d)
			written, err := promotion.Record(ahead, d)
			diff(t, nil, err)
			unchanged, err := promotion.Record(now, want)
			diff(t, nil, err)
			for i := range unchanged { // the timestamp identifies the promotion, and stays
				diff(t, unchanged[i].PromotedTime(), written[i].PromotedTime())
				unchanged[i].Timestamp, unchanged[i].RetryStartTime = written[i].Timestamp, written[i].RetryStartTime
			}
			diff(t, unchanged, written)

			ahead.Rollout.Status.History = written
			ahead.Now = noon.Add(time.Second)
			again, err := promotion.Record(ahead, promotion.Decide(ahead))
			diff(t, nil, err)
			diff(t, written, again)
		})
	}
}

// The clock of the writer of a HealthCheck was ahead. A loss counts from when the bake stands still, and a reset
// from the promotion: to count from now, with each look anew, would wait for ever.
func TestChangeOfAHealthCheckThatHasNotComeDelaysNothing(t *testing.T) {
	tomorrow, tenMinutesAgo := noon.Add(24*time.Hour), noon.Add(-10*time.Minute)
	lost := promotion.Decide(bakes(2*time.Hour, loses(tomorrow), tenMinutesAgo, 0).in())
	diff(t, promotion.Decide(bakes(2*time.Hour, loses(tenMinutesAgo), tenMinutesAgo, 0).in()), lost)
	diff(t, promotion.FailBake, lost.Action)

	first := promotion.Decide(bakes(2*time.Hour, loses(tomorrow), time.Time{}, 0).in())
	diff(t, promotion.Wait, first.Action)
	diff(t, noon.Add(time.Minute), first.RecheckAt)

	reset := given(deploying().BakeTime(time.Hour)).targets(applied("apps")).at(noon).resetChecks(check("db").Pending().ChangedAt(tomorrow))
	diff(t, true, promotion.Decide(reset.in()).Overdue)
}
