// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// play simulates passes over a Rollout.
type play struct {
	clock   fixture.Clock
	metrics *metrics.Rollouts
	rollout *v1alpha1.Rollout
	proven  time.Time // since when the environments before this one have proven what it promotes
}

func newPlay(entries ...*fixture.EntryBuilder) *play {
	p := &play{rollout: fixture.MakeRollout("shop").History(entries...).Obj()}
	p.restart()
	return p
}

// restart simulates a controller without any observations.
func (p *play) restart() { p.metrics = metrics.NewRollouts(p.clock.Now) }

// others simulates a change of the history by other clients.
func (p *play) others(entries ...*fixture.EntryBuilder) {
	p.rollout = fixture.MakeRollout("shop").History(entries...).Obj()
}

// looks is a pass that stores nothing.
func (p *play) looks(d promotion.Decision) {
	p.metrics.Observe(metrics.Pass{Before: p.rollout, Status: &p.rollout.Status, Decision: d})
}

// stores is a pass that stores these history entries.
func (p *play) stores(d promotion.Decision, entries ...*fixture.EntryBuilder) {
	before := p.rollout
	p.others(entries...)
	p.metrics.Observe(metrics.Pass{Before: before, Stored: p.rollout, Status: &p.rollout.Status, Decision: d, Proven: p.proven})
}

// at returns a time in seconds relative to the start.
func (p *play) at(seconds int) time.Time {
	start := (&fixture.Clock{}).Now()
	return start.Add(time.Duration(seconds) * time.Second)
}

// gathered returns the metrics that Prometheus reads.
func gathered(t *testing.T, collectors ...prometheus.Collector) []*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collectors...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// series returns all values that are not zero. A histogram is shown as its sum and its
// count.
func series(t *testing.T, collectors ...prometheus.Collector) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for _, family := range gathered(t, collectors...) {
		for _, metric := range family.GetMetric() {
			switch labels := labelsOf(metric); {
			case metric.GetHistogram() != nil:
				all[family.GetName()+"_sum"+labels] = metric.GetHistogram().GetSampleSum()
				all[family.GetName()+"_count"+labels] = float64(metric.GetHistogram().GetSampleCount())
			case metric.GetCounter() != nil:
				all[family.GetName()+labels] = metric.GetCounter().GetValue()
			default:
				all[family.GetName()+labels] = metric.GetGauge().GetValue()
			}
		}
	}
	maps.DeleteFunc(all, func(_ string, value float64) bool { return value == 0 })
	return all
}

func labelsOf(metric *dto.Metric) string {
	var pairs []string
	for _, label := range metric.GetLabel() {
		pairs = append(pairs, label.GetName()+"="+label.GetValue())
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

// without removes the series whose names have one of the prefixes.
func without(all map[string]float64, prefixes ...string) map[string]float64 {
	maps.DeleteFunc(all, func(name string, _ float64) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	})
	return all
}

var (
	promote = does(promotion.Promote)
	wait    = does(promotion.Wait)
	nothing = does(promotion.Nothing)
)

func TestPromotionsAreCountedAsTheyEnd(t *testing.T) {
	first := func(p *play) *fixture.EntryBuilder { return fixture.MakeEntry("1.0.0").ID(1).At(p.at(0)) }
	second := func(p *play) *fixture.EntryBuilder { return fixture.MakeEntry("1.1.0").ID(2).At(p.at(100)) }
	for name, tt := range map[string]struct {
		happens func(*play)
		want    map[string]float64
	}{
		"a bake that succeeds": {
			happens: func(p *play) {
				p.stores(promote, first(p).Deploying())
				p.stores(does(promotion.StartBake), first(p).Baking(p.at(20)))
				p.looks(wait)
				p.stores(does(promotion.FinishBake), first(p).Succeeded().BakeStart(p.at(20)).BakeEnd(p.at(320)))
				p.looks(nothing)
			},
			want: map[string]float64{
				"rollout_promotions_started_total{trigger=automatic}":     1,
				"rollout_promotions_total{result=Succeeded}":              1,
				"rollout_deploy_duration_seconds_count{result=Succeeded}": 1,
				"rollout_deploy_duration_seconds_sum{result=Succeeded}":   20,
				"rollout_bake_duration_seconds_count{result=Succeeded}":   1,
				"rollout_bake_duration_seconds_sum{result=Succeeded}":     300,
			},
		},
		"one without a bake time, and one with nothing to wait for": {
			happens: func(p *play) {
				p.stores(promote, first(p).Deploying())
				p.stores(does(promotion.FinishBake), first(p).Succeeded().BakeEnd(p.at(7)))
				p.stores(promote, second(p).Succeeded().BakeEnd(p.at(100)), first(p).Succeeded().BakeEnd(p.at(7)))
			},
			want: map[string]float64{
				"rollout_promotions_started_total{trigger=automatic}":     2,
				"rollout_promotions_total{result=Succeeded}":              2,
				"rollout_deploy_duration_seconds_count{result=Succeeded}": 1,
				"rollout_deploy_duration_seconds_sum{result=Succeeded}":   7,
			},
		},
		"a deployment that never becomes healthy": {
			happens: func(p *play) {
				p.stores(promote, first(p).Deploying())
				p.stores(does(promotion.FailBake), first(p).Failed().BakeEnd(p.at(600)))
			},
			want: map[string]float64{
				"rollout_promotions_started_total{trigger=automatic}":  1,
				"rollout_promotions_total{result=Failed}":              1,
				"rollout_deploy_duration_seconds_count{result=Failed}": 1,
				"rollout_deploy_duration_seconds_sum{result=Failed}":   600,
			},
		},
		"a failed bake, a rollback, and the time to restore": {
			happens: func(p *play) {
				p.stores(promote, first(p).Deploying())
				p.stores(does(promotion.StartBake), first(p).Baking(p.at(10)))
				failed := first(p).Failed().BakeStart(p.at(10)).BakeEnd(p.at(40))
				p.stores(does(promotion.FailBake), failed)
				p.stores(promotion.Decision{Outcome: promotion.Outcome{Action: promotion.Promote, Manual: true}}, second(p).Deploying(), failed)
				p.stores(does(promotion.FinishBake), second(p).Succeeded().BakeEnd(p.at(130)), failed)
			},
			want: map[string]float64{
				"rollout_promotions_started_total{trigger=automatic}":     1,
				"rollout_promotions_started_total{trigger=manual}":        1,
				"rollout_promotions_total{result=Failed}":                 1,
				"rollout_promotions_total{result=Succeeded}":              1,
				"rollout_deploy_duration_seconds_count{result=Succeeded}": 2,
				"rollout_deploy_duration_seconds_sum{result=Succeeded}":   10 + 30,
				"rollout_bake_duration_seconds_count{result=Failed}":      1,
				"rollout_bake_duration_seconds_sum{result=Failed}":        30,
				"rollout_restore_duration_seconds_count{}":                1,
				"rollout_restore_duration_seconds_sum{}":                  90,
			},
		},
		"a tag that was pushed again": {
			happens: func(p *play) {
				p.stores(promote, first(p).Deploying())
				moved := promotion.Decision{Outcome: promotion.Outcome{Action: promotion.Supersede, Reason: v1alpha1.TagMovedReason}}
				p.stores(moved, second(p).Deploying(), first(p).Cancelled())
			},
			want: map[string]float64{
				"rollout_promotions_started_total{trigger=automatic}":     1,
				"rollout_promotions_started_total{trigger=tag_moved}":     1,
				"rollout_promotions_total{result=Cancelled}":              1,
				"rollout_deploy_duration_seconds_count{result=Cancelled}": 1,
			},
		},
		"a retry has a result of its own": {
			happens: func(p *play) {
				p.stores(promote, first(p).Deploying())
				p.stores(does(promotion.FailBake), first(p).Failed().BakeEnd(p.at(60)))
				p.stores(does(promotion.Retry), first(p).Deploying().Retried(p.at(100)))
				p.stores(does(promotion.FinishBake), first(p).Succeeded().Retried(p.at(100)).BakeEnd(p.at(105)))
			},
			want: map[string]float64{
				"rollout_promotions_started_total{trigger=automatic}":     1,
				"rollout_promotions_started_total{trigger=retry}":         1,
				"rollout_promotions_total{result=Failed}":                 1,
				"rollout_promotions_total{result=Succeeded}":              1,
				"rollout_deploy_duration_seconds_count{result=Failed}":    1,
				"rollout_deploy_duration_seconds_sum{result=Failed}":      60,
				"rollout_deploy_duration_seconds_count{result=Succeeded}": 1,
				"rollout_deploy_duration_seconds_sum{result=Succeeded}":   5,
				"rollout_restore_duration_seconds_count{}":                1,
				"rollout_restore_duration_seconds_sum{}":                  45,
			},
		},
		"a running one is superseded": {
			happens: func(p *play) {
				p.stores(promote, first(p).Deploying())
				p.stores(does(promotion.Supersede), second(p).Deploying(), first(p).Cancelled().BakeEnd(p.at(100)))
			},
			want: map[string]float64{
				"rollout_promotions_started_total{trigger=automatic}":     2,
				"rollout_promotions_total{result=Cancelled}":              1,
				"rollout_deploy_duration_seconds_count{result=Cancelled}": 1,
				"rollout_deploy_duration_seconds_sum{result=Cancelled}":   100,
			},
		},
		"a running one is superseded, and the history keeps one entry": {
			happens: func(p *play) {
				p.stores(promote, first(p).Deploying())
				p.stores(does(promotion.Supersede), second(p).Deploying())
			},
			want: map[string]float64{
				"rollout_promotions_started_total{trigger=automatic}": 2,
				"rollout_promotions_total{result=Cancelled}":          1,
			},
		},
		"a failure is restored once": {
			happens: func(p *play) {
				failed, restored := first(p).Failed().BakeEnd(p.at(40)), second(p).Succeeded().BakeEnd(p.at(130))
				p.others(failed)
				p.looks(nothing)
				p.stores(promote, restored, failed)
				third := fixture.MakeEntry("1.2.0").ID(3).At(p.at(200)).Succeeded().BakeEnd(p.at(200))
				p.stores(promote, third, restored, failed)
			},
			want: map[string]float64{
				"rollout_promotions_started_total{trigger=automatic}": 2,
				"rollout_promotions_total{result=Succeeded}":          2,
				"rollout_restore_duration_seconds_count{}":            1,
				"rollout_restore_duration_seconds_sum{}":              90,
			},
		},
		"the same release is promoted twice within a second": {
			happens: func(p *play) {
				p.stores(promote, first(p).Deploying())
				again := fixture.MakeEntry("1.0.0").ID(2).At(p.at(0)).Deploying()
				p.stores(does(promotion.Supersede), again, first(p).Cancelled().BakeEnd(p.at(0)))
			},
			want: map[string]float64{
				"rollout_promotions_started_total{trigger=automatic}":     2,
				"rollout_promotions_total{result=Cancelled}":              1,
				"rollout_deploy_duration_seconds_count{result=Cancelled}": 1,
			},
		},
		"another client marks it successful": {
			happens: func(p *play) {
				p.stores(promote, first(p).Deploying())
				p.stores(does(promotion.StartBake), first(p).Baking(p.at(10)))
				p.others(first(p).Succeeded().BakeStart(p.at(10)).BakeEnd(p.at(25)))
				p.looks(nothing)
				p.looks(nothing)
			},
			want: map[string]float64{
				"rollout_promotions_started_total{trigger=automatic}":     1,
				"rollout_promotions_total{result=Succeeded}":              1,
				"rollout_deploy_duration_seconds_count{result=Succeeded}": 1,
				"rollout_deploy_duration_seconds_sum{result=Succeeded}":   10,
				"rollout_bake_duration_seconds_count{result=Succeeded}":   1,
				"rollout_bake_duration_seconds_sum{result=Succeeded}":     15,
			},
		},
		"the controller starts anew during a bake, and after a failure": {
			happens: func(p *play) {
				failed := first(p).Failed().BakeEnd(p.at(60))
				p.others(second(p).Baking(p.at(110)), failed)
				p.restart()
				p.looks(wait)
				p.stores(does(promotion.FinishBake), second(p).Succeeded().BakeStart(p.at(110)).BakeEnd(p.at(410)), failed)
			},
			want: map[string]float64{
				"rollout_promotions_total{result=Succeeded}":            1,
				"rollout_bake_duration_seconds_count{result=Succeeded}": 1,
				"rollout_bake_duration_seconds_sum{result=Succeeded}":   300,
				"rollout_restore_duration_seconds_count{}":              1,
				"rollout_restore_duration_seconds_sum{}":                350,
			},
		},
		"what ended before is not counted again": {
			happens: func(p *play) {
				p.others(second(p).Succeeded().BakeEnd(p.at(130)), first(p).Failed().BakeEnd(p.at(60)))
				p.restart()
				p.looks(nothing)
				p.looks(nothing)
			},
			want: map[string]float64{},
		},
		"a lost history is adopted": {
			happens: func(p *play) {
				p.stores(does(promotion.Adopt), first(p).Deploying())
			},
			want: map[string]float64{"rollout_promotions_started_total{trigger=adoption}": 1},
		},
		"the clocks of two writers disagree": {
			happens: func(p *play) {
				p.stores(promote, first(p).Deploying())
				p.others(first(p).Succeeded().BakeEnd(p.at(-50)))
				p.looks(nothing)
			},
			want: map[string]float64{
				"rollout_promotions_started_total{trigger=automatic}":     1,
				"rollout_promotions_total{result=Succeeded}":              1,
				"rollout_deploy_duration_seconds_count{result=Succeeded}": 1,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay()
			tt.happens(p)
			got := without(series(t, p.metrics), "rollout_rollouts", "rollout_targets")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// does returns the decision for an action.
func does(a promotion.Action) promotion.Decision {
	return promotion.Decision{Outcome: promotion.Outcome{Action: a}}
}

// held returns a decision not to promote candidates, each for the given reasons, newest
// first.
func held(candidates ...promotion.Verdict) promotion.Decision {
	return promotion.Decision{Outcome: promotion.Outcome{Action: promotion.Nothing}, Releases: promotion.Releases{Candidates: candidates}}
}

func candidate(tag string, reasons ...string) promotion.Verdict {
	judged := promotion.Verdict{Release: v1alpha1.VersionInfo{Tag: tag}}
	for _, reason := range reasons {
		judged.Holds = append(judged.Holds, verdict.Hold{Reason: reason})
	}
	return judged
}

func TestBlockedTimeGrowsWithoutAPass(t *testing.T) {
	p := newPlay()
	blocked := func() map[string]float64 {
		return without(series(t, p.metrics), "rollout_rollouts", "rollout_targets", "rollout_promotion")
	}
	expect := func(when string, want map[string]float64) {
		t.Helper()
		if diff := cmp.Diff(want, blocked()); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}
	p.looks(held())
	p.clock.Pass(time.Hour)
	expect("nothing waits", map[string]float64{})

	p.looks(held(candidate("1.1.0", v1alpha1.SomeGatesBlockingReason, v1alpha1.ScheduleClosedReason)))
	p.clock.Pass(90 * time.Second)
	expect("a gate is closed; it is reported first, and alone", map[string]float64{
		"rollout_blocked{reason=SomeGatesBlocking}": 1, "rollout_blocked_seconds_total{reason=SomeGatesBlocking}": 90})
	p.clock.Pass(10 * time.Second)
	expect("later, without a pass", map[string]float64{
		"rollout_blocked{reason=SomeGatesBlocking}": 1, "rollout_blocked_seconds_total{reason=SomeGatesBlocking}": 100})

	p.looks(held(candidate("1.2.0", v1alpha1.SomeGatesBlockingReason), candidate("1.1.0", v1alpha1.SomeGatesBlockingReason)))
	p.looks(held(candidate("1.2.0", v1alpha1.ScheduleClosedReason)))
	p.clock.Pass(5 * time.Second)
	expect("for another reason now", map[string]float64{
		"rollout_blocked_seconds_total{reason=SomeGatesBlocking}": 100,
		"rollout_blocked{reason=ScheduleClosed}":                  1, "rollout_blocked_seconds_total{reason=ScheduleClosed}": 5})

	p.stores(promotion.Decision{Outcome: promotion.Outcome{Action: promotion.Promote, Release: v1alpha1.VersionInfo{Tag: "1.2.0"}}, Releases: promotion.Releases{Candidates: []promotion.Verdict{candidate("1.2.0")}}},
		fixture.MakeEntry("1.2.0").Deploying())
	p.clock.Pass(time.Hour)
	past := map[string]float64{
		"rollout_blocked_seconds_total{reason=SomeGatesBlocking}": 100, "rollout_blocked_seconds_total{reason=ScheduleClosed}": 5}
	expect("promoted", past)

	p.looks(held(candidate("1.3.0", v1alpha1.ScheduleClosedReason)))
	p.clock.Pass(time.Second)
	p.metrics.Forget(client.ObjectKeyFromObject(p.rollout))
	p.clock.Pass(time.Hour)
	past["rollout_blocked_seconds_total{reason=ScheduleClosed}"] = 6
	expect("suspended or deleted: what has been counted stays, and no more comes", past)
}

func TestConsideredCandidatesCountAsBlocked(t *testing.T) {
	p := newPlay()
	p.looks(held(
		candidate("1.3.0", v1alpha1.NotNextReason),
		candidate("1.2.0", v1alpha1.BakeRunningReason, v1alpha1.NotNextReason),
		candidate("1.1.0", v1alpha1.UnhealthyHealthChecksReason)))
	p.clock.Pass(time.Minute)
	want := map[string]float64{
		"rollout_blocked{reason=UnhealthyHealthChecks}":               1,
		"rollout_blocked_seconds_total{reason=UnhealthyHealthChecks}": 60,
	}
	if diff := cmp.Diff(want, without(series(t, p.metrics), "rollout_rollouts")); diff != "" {
		t.Error(diff)
	}
}

func TestReleaseWaitsFromWhenItIsACandidate(t *testing.T) {
	p := newPlay()
	waits := func() map[string]float64 {
		return without(series(t, p.metrics), "rollout_rollouts", "rollout_blocked", "rollout_promotions", "rollout_deploy")
	}
	release := func(tag string, manual bool, candidates ...promotion.Verdict) promotion.Decision {
		return promotion.Decision{Outcome: promotion.Outcome{Action: promotion.Promote, Manual: manual, Release: v1alpha1.VersionInfo{Tag: tag}}, Releases: promotion.Releases{Candidates: candidates}}
	}
	p.looks(held(candidate("1.1.0", v1alpha1.SomeGatesBlockingReason)))
	p.clock.Pass(time.Minute)
	p.looks(held(candidate("1.2.0", v1alpha1.SomeGatesBlockingReason), candidate("1.1.0", v1alpha1.SomeGatesBlockingReason)))
	p.clock.Pass(30 * time.Second)
	p.stores(release("1.2.0", false, candidate("1.2.0"), candidate("1.1.0")), fixture.MakeEntry("1.2.0").Deploying())
	want := map[string]float64{
		"rollout_promotion_wait_seconds_count{trigger=automatic}": 1,
		"rollout_promotion_wait_seconds_sum{trigger=automatic}":   30,
	}
	if diff := cmp.Diff(want, waits()); diff != "" {
		t.Error("the one that is promoted counts, not the one that it overtakes:", diff)
	}

	p.stores(release("0.9.0", true), fixture.MakeEntry("0.9.0").At(p.at(200)).Deploying(), fixture.MakeEntry("1.2.0").Cancelled())
	if diff := cmp.Diff(want, waits()); diff != "" {
		t.Error("an older one was no candidate, so it did not wait:", diff)
	}

	p.looks(held(candidate("1.3.0", v1alpha1.PinnedReason)))
	p.clock.Pass(time.Second)
	p.stores(release("1.3.0", true, candidate("1.3.0")), fixture.MakeEntry("1.3.0").At(p.at(300)).Deploying())
	want["rollout_promotion_wait_seconds_count{trigger=manual}"] = 1
	want["rollout_promotion_wait_seconds_sum{trigger=manual}"] = 1
	if diff := cmp.Diff(want, waits()); diff != "" {
		t.Error("a user's choice may be a candidate:", diff)
	}
}

func TestLeadTimeIsFromTheProofToThePromotion(t *testing.T) {
	p := newPlay()
	promote := promotion.Decision{Outcome: promotion.Outcome{Action: promotion.Promote, Release: v1alpha1.VersionInfo{Tag: "1.0.0"}}}
	p.stores(promote, fixture.MakeEntry("1.0.0").Deploying())
	leads := func() map[string]float64 {
		all := series(t, p.metrics)
		maps.DeleteFunc(all, func(name string, _ float64) bool { return !strings.HasPrefix(name, "rollout_environment_lead") })
		return all
	}
	if diff := cmp.Diff(map[string]float64{}, leads()); diff != "" {
		t.Error("without an upstream there is none:", diff)
	}
	p.proven = p.clock.Now().Add(-time.Hour)
	p.stores(promote, fixture.MakeEntry("1.1.0").ID(2).Deploying())
	want := map[string]float64{"rollout_environment_lead_time_seconds_count{}": 1, "rollout_environment_lead_time_seconds_sum{}": 3600}
	if diff := cmp.Diff(want, leads()); diff != "" {
		t.Error(diff)
	}
}

func TestRolloutsAndTargetsAreCountedByState(t *testing.T) {
	all := metrics.NewRollouts((&fixture.Clock{}).Now)
	add := func(name string, state v1alpha1.BakeStatus, ready metav1.ConditionStatus, targets ...v1alpha1.TargetState) client.ObjectKey {
		rollout := fixture.MakeRollout(name).Obj()
		if state != "" {
			rollout.Status.History = []v1alpha1.DeploymentHistoryEntry{fixture.MakeEntry("1.0.0").State(state).Obj()}
		}
		if ready != "" {
			rollout.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: ready}}
		}
		for i, target := range targets {
			rollout.Status.Targets = append(rollout.Status.Targets, v1alpha1.TargetStatus{Name: fmt.Sprint(i), State: target})
		}
		all.Observe(metrics.Pass{Before: rollout, Status: &rollout.Status})
		return client.ObjectKeyFromObject(rollout)
	}
	add("new", "", "")
	add("old", "Pending", metav1.ConditionTrue)
	add("shop", v1alpha1.BakeSucceeded, metav1.ConditionTrue, v1alpha1.TargetApplied, v1alpha1.TargetApplied)
	add("cart", v1alpha1.BakeDeploying, metav1.ConditionTrue, v1alpha1.TargetApplied, v1alpha1.TargetPending)
	unhealthy := add("unhealthy", v1alpha1.BakeFailed, metav1.ConditionFalse, v1alpha1.TargetConflict)
	want := map[string]float64{
		"rollout_rollouts{bake_status=None,ready=Unknown}":   1,
		"rollout_rollouts{bake_status=None,ready=True}":      1,
		"rollout_rollouts{bake_status=Succeeded,ready=True}": 1,
		"rollout_rollouts{bake_status=Deploying,ready=True}": 1,
		"rollout_rollouts{bake_status=Failed,ready=False}":   1,
		"rollout_targets{state=Applied}":                     3,
		"rollout_targets{state=Pending}":                     1,
		"rollout_targets{state=Conflict}":                    1,
	}
	if diff := cmp.Diff(want, series(t, all)); diff != "" {
		t.Error(diff)
	}
	all.Forget(unhealthy)
	delete(want, "rollout_rollouts{bake_status=Failed,ready=False}")
	delete(want, "rollout_targets{state=Conflict}")
	if diff := cmp.Diff(want, series(t, all)); diff != "" {
		t.Error("forgotten:", diff)
	}
}

func TestNothingIsCountedWithoutMetrics(t *testing.T) {
	var none *metrics.Rollouts
	none.Observe(metrics.Pass{Before: fixture.MakeRollout("shop").Obj()})
	none.Forget(client.ObjectKey{})
	var untimed *metrics.Durations
	inner := reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) { return ctrl.Result{RequeueAfter: 1}, nil })
	if result, err := untimed.Of("Rollout", inner, nil, nil).Reconcile(t.Context(), ctrl.Request{}); err != nil || result.RequeueAfter != 1 {
		t.Errorf("the reconciler said %v, %v", result, err)
	}
}

// objects is a cache with at most one object.
type objects struct {
	client.Reader
	exists bool
	labels map[string]string
}

func (o *objects) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if o.exists {
		object.SetLabels(o.labels)
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "rollouts"}, key.Name)
}

func TestDurationsEndWithTheObject(t *testing.T) {
	broken := errors.New("broken")
	cache := &objects{exists: true}
	durations := metrics.NewDurations(time.Now, cache)
	timed := durations.Of(v1alpha1.RolloutKind, reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
		return ctrl.Result{}, broken
	}), func(o client.Object) bool { return o.GetLabels()["of"] == "" }, func() client.Object { return &v1alpha1.Rollout{} })
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "prod", Name: "shop"}}
	reconciled := func() map[string]float64 {
		t.Helper()
		if _, err := timed.Reconcile(t.Context(), request); !errors.Is(err, broken) {
			t.Fatalf("the reconciler's own error is lost: %v", err)
		}
		return without(series(t, durations), "gotk_reconcile_duration_seconds_sum")
	}
	reconciled()
	want := map[string]float64{"gotk_reconcile_duration_seconds_count{kind=Rollout,name=shop,namespace=prod}": 2}
	if diff := cmp.Diff(want, reconciled()); diff != "" {
		t.Error(diff)
	}
	cache.labels = map[string]string{"of": "another"}
	if got := reconciled(); len(got) > 0 {
		t.Errorf("another instance acts for it, and there is still %v", got)
	}
	cache.labels = nil
	reconciled()
	cache.exists = false
	if got := reconciled(); len(got) > 0 {
		t.Errorf("the object is gone, and there is still %v", got)
	}
}

func TestDurationsOfObjectsThatAreReconciledTogetherEndWithEachOfThem(t *testing.T) {
	durations := metrics.NewDurations(time.Now, nil)
	for _, pass := range []struct {
		namespace string
		names     []string
	}{
		{"prod", []string{"shop", "store"}},
		{"test", []string{"shop"}},
		{"prod", []string{"store"}},
	} {
		durations.Together("DeploymentCoordination", pass.namespace, pass.names, time.Now())
	}
	want := map[string]float64{
		"gotk_reconcile_duration_seconds_count{kind=DeploymentCoordination,name=store,namespace=prod}": 2,
		"gotk_reconcile_duration_seconds_count{kind=DeploymentCoordination,name=shop,namespace=test}":  1,
	}
	if diff := cmp.Diff(want, without(series(t, durations), "gotk_reconcile_duration_seconds_sum")); diff != "" {
		t.Error(diff)
	}
	durations.Together("DeploymentCoordination", "prod", nil, time.Now())
	durations.Together("DeploymentCoordination", "test", nil, time.Now())
	if got := series(t, durations); len(got) > 0 {
		t.Errorf("all are gone, and there is still %v", got)
	}
}
