// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

type settings = func(*v1alpha1.RolloutRollback)

func respectingBarriers(r *v1alpha1.RolloutRollback) { r.Barriers = v1alpha1.RollbackBarriersRespect }

func causes(all ...v1alpha1.FailureCause) settings {
	return func(r *v1alpha1.RolloutRollback) { r.Causes = all }
}

func obeyingSchedules(r *v1alpha1.RolloutRollback) { r.Schedules = v1alpha1.RollbackSchedulesObey }

func notBelow(tag string) settings { return func(r *v1alpha1.RolloutRollback) { r.NotBelow = tag } }

// unhealthyRelease returns the entry of 1.2.0, which a HealthCheck failed at noon.
func unhealthyRelease() *fixture.EntryBuilder {
	return entry("1.2.0").ID(7).Failed(failedCheck("db", "down")).Because("HealthCheck shop-prod/db: down").
		Due(v1alpha1.CauseHealthCheckFailed, noon)
}

// failedHere returns a Rollout that goes back by itself, on which 1.2.0 has failed after
// the other entries.
func failedHere(before ...*fixture.EntryBuilder) *fixture.RolloutBuilder {
	return rollout().Ledger("1.1.0", "1.2.0").RollsBack().
		History(append([]*fixture.EntryBuilder{unhealthyRelease()}, before...)...)
}

// afterProven returns a Rollout on which 1.2.0 has failed after 1.1.0 has succeeded.
func afterProven(changes ...settings) *fixture.RolloutBuilder {
	return failedHere(entry("1.1.0").ID(5).Succeeded()).RollsBack(changes...)
}

// recoversBy returns a Rollout that went back to 1.1.0 at eleven.
func recoversBy(back *fixture.EntryBuilder, changes ...settings) *fixture.RolloutBuilder {
	return rollout().Ledger("1.1.0", "1.2.0").RollsBack(changes...).
		History(back.ID(8).Back("1.2.0", 7, 5), unhealthyRelease(), entry("1.1.0").ID(5).Succeeded())
}

func TestFailureIsAnsweredByARollback(t *testing.T) {
	back := func(tag string) outcome {
		return outcome{
			Action: promotion.Promote, Release: tag, Reason: v1alpha1.AutomaticRollbackReason,
			Message: "rolled back from 1.2.0 (#7): HealthCheck shop-prod/db: down",
		}
	}
	nothing := outcome{Action: promotion.Nothing}
	sameContent := func(digest string, e *fixture.EntryBuilder, tag string) *fixture.EntryBuilder {
		return e.Version(release(tag).Digest(digest).Obj())
	}
	for name, test := range map[string]struct {
		given  *situation
		want   outcome
		reason string
	}{
		"to the release that succeeded last": {given(afterProven()), back("1.1.0"), v1alpha1.RollbackDelayedReason},
		"not without spec.rollback": {
			given(rollout().Ledger("1.1.0", "1.2.0").History(unhealthyRelease(), entry("1.1.0").Succeeded())), nothing, "",
		},
		"not if the cause is not selected": {
			given(rollout().Ledger("1.1.0", "1.2.0").RollsBack().
				History(entry("1.2.0").Failed().Because("not applied and healthy within 5m0s: x"), entry("1.1.0").Succeeded())),
			nothing, v1alpha1.CauseNotSelectedReason,
		},
		"not if it failed before spec.rollback was set": {
			given(rollout().Ledger("1.1.0", "1.2.0").RollsBack().
				History(entry("1.2.0").Failed(failedCheck("db", "down")).Cause(v1alpha1.CauseHealthCheckFailed), entry("1.1.0").Succeeded())),
			nothing, v1alpha1.RollbackNotDueReason,
		},
		"past what was cancelled": {
			given(failedHere(entry("1.1.5").Cancelled(), entry("1.1.0").ID(5).Succeeded())), back("1.1.0"), v1alpha1.RollbackDelayedReason,
		},
		"past what failed after it had succeeded": {
			given(failedHere(entry("1.1.0").Failed(), entry("1.1.0").Succeeded(), entry("1.0.0").Succeeded())),
			back("1.0.0"), v1alpha1.RollbackDelayedReason,
		},
		"past the same content under another tag": {
			given(rollout().Ledger("1.0.0", "1.1.0", "1.2.0").RollsBack().History(
				sameContent("sha256:bad", unhealthyRelease(), "1.2.0"), sameContent("sha256:bad", entry("1.1.0").Succeeded(), "1.1.0"),
				sameContent("sha256:good", entry("1.0.0").Succeeded(), "1.0.0"))),
			back("1.0.0"), v1alpha1.RollbackDelayedReason,
		},
		"past a tag that has moved": {
			given(rollout().Releases(release("1.0.0").Obj(), release("1.1.0").Digest("sha256:moved").Obj(), release("1.2.0").Obj()).RollsBack().History(
				unhealthyRelease(), sameContent("sha256:was", entry("1.1.0").Succeeded(), "1.1.0"), entry("1.0.0").Succeeded())),
			back("1.0.0"), v1alpha1.RollbackDelayedReason,
		},
		"past what was deleted from the registry": {
			given(failedHere(entry("1.1.0").Succeeded(), entry("1.0.0").Succeeded())).registryHas("1.0.0", "1.2.0"),
			back("1.0.0"), v1alpha1.RollbackDelayedReason,
		},
		"not if nothing else has succeeded": {given(failedHere(entry("1.1.0").Cancelled())), nothing, v1alpha1.NoProvenReleaseReason},
		"not below the floor":               {given(afterProven(notBelow("1.1.5"))), nothing, v1alpha1.BelowRollbackFloorReason},
		"down to the floor":                 {given(afterProven(notBelow("1.1.0"))), back("1.1.0"), v1alpha1.RollbackDelayedReason},
		"not if the floor cannot be compared": {
			given(afterProven(notBelow("stable"))), nothing, v1alpha1.BelowRollbackFloorReason,
		},
		"not while a version is pinned":      {given(afterProven().Pin("1.2.0")), nothing, v1alpha1.PinnedReason},
		"not while an unknown one is forced": {given(afterProven().Annotate(v1alpha1.ForceDeployAnnotation, "9.9.9")), nothing, v1alpha1.ForcedReason},
		"not while a retry is requested": {
			given(afterProven().Annotate(v1alpha1.RetryAnnotation, "")),
			outcome{Action: promotion.Retry, Reason: v1alpha1.RetryRequestedReason, Message: "a retry was requested"},
			v1alpha1.RollbackDelayedReason,
		},
		"not before the delay is over": {
			given(afterProven()).at(noon.Add(-instant)), outcome{Action: promotion.Nothing, RecheckAt: noon}, v1alpha1.RollbackDelayedReason,
		},
		"at once without a delay, although the times are rounded up": {
			given(failedHere().History(unhealthyRelease().BakeEnd(noon), entry("1.1.0").ID(5).Succeeded())).
				at(noon.Add(-instant)),
			back("1.1.0"), v1alpha1.RollbackDelayedReason,
		},
		"past gates, schedules, Unhealthy HealthChecks and the interval": {
			given(afterProven().ReleaseUpdateInterval(24 * time.Hour).SelectAllChecks()).gates(gate("approval").Closed()).
				schedules(closedUntil(one, "night")).resetChecks(check("db").Unhealthy()),
			back("1.1.0"), v1alpha1.RollbackDelayedReason,
		},
		"while the policy cannot be read": {given(afterProven()).policyUnreadable(), back("1.1.0"), v1alpha1.RollbackDelayedReason},
		"not before all schedules are open, if it obeys them": {
			given(afterProven(obeyingSchedules)).schedules(closedUntil(one, "night"), openUntil(one.Add(time.Hour), "week")),
			outcome{Action: promotion.Nothing, RecheckAt: one}, v1alpha1.ScheduleClosedReason,
		},
		"once all schedules are open, if it obeys them": {
			given(afterProven(obeyingSchedules)).schedules(openUntil(one, "night")), back("1.1.0"), v1alpha1.RollbackDelayedReason,
		},
		"not if a user lets a fix go": {
			given(afterProven().Ledger("1.1.0", "1.2.0", "1.3.0").Annotate(v1alpha1.UnblockFailedAnnotation, "true")),
			outcome{
				Action: promotion.Promote, Release: "1.3.0", Reason: v1alpha1.EligibleReason,
				Message: "the newest eligible release of ImagePolicy shop; a failure bypassed manually",
			}, v1alpha1.RollbackDelayedReason,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, test.want, outcomeOf(d))
			diff(t, test.reason, d.Rollback.Reason)
		})
	}
}

func TestRollbackStopsAtAForwardOnlyRelease(t *testing.T) {
	marked := func(tag string, mark *bool) v1alpha1.VersionInfo {
		release := release(tag).Digest("sha256:" + tag).Obj()
		release.ForwardOnly = mark
		return release
	}
	yes, no := to(true), to(false)
	skipping := func(first, second, third *bool) *situation {
		return given(rollout().Releases(marked("1.1.0", no), marked("1.1.7", first), marked("1.1.9", second), marked("1.2.0", third), marked("1.3.0", yes)).
			RollsBack(respectingBarriers).History(unhealthyRelease().Version(marked("1.2.0", third)), entry("1.1.0").ID(5).Succeeded()))
	}
	off := func(s *situation) *situation {
		s.input.MetadataOff = true
		return s
	}
	const would = "would go back to 1.1.0, but it is not known whether 1.1.9, 1.1.7 can be left again: " +
		"see why the registry does not say it, pin a version, or remove spec.rollback.barriers"
	for name, test := range map[string]struct {
		given  *situation
		action promotion.Action
		want   verdict.Hold
	}{
		"not past one that was skipped": {skipping(yes, no, no), promotion.Nothing, verdict.Hold{
			Reason:  v1alpha1.RollbackBarrierReason,
			Message: "rolling back to 1.1.0, the last release that succeeded, would cross 1.1.7, marked as forward-only: deploy a fix, or pin a version",
		}},
		"not past the one that failed": {skipping(no, nil, yes), promotion.Nothing, verdict.Hold{
			Reason:  v1alpha1.RollbackBarrierReason,
			Message: "rolling back to 1.1.0, the last release that succeeded, would cross 1.2.0, marked as forward-only: deploy a fix, or pin a version",
		}},
		"past newer ones, and past those that are not marked": {skipping(no, no, no), promotion.Promote, verdict.Hold{
			Reason: v1alpha1.RollbackDelayedReason, Message: "goes back to 1.1.0",
		}},
		"not while that is not known": {skipping(nil, nil, no), promotion.Nothing, verdict.Hold{
			Reason: v1alpha1.RollbackDelayedReason, Until: noon.Add(time.Minute),
			Message: "goes back to 1.1.0 unless that crosses a forward-only release: it is not known whether 1.1.9, 1.1.7 can be left again, and the registry is being queried",
		}},
		"which is said after a minute": {skipping(nil, nil, no).at(noon.Add(time.Minute)), promotion.Nothing, verdict.Hold{
			Reason: v1alpha1.RollbackBarrierUnknownReason, Message: would,
		}},
		"not if metadata is not read": {off(skipping(nil, nil, nil)), promotion.Nothing, verdict.Hold{
			Reason: v1alpha1.MetadataDisabledReason,
			Message: "does not go back, because it cannot be known which releases are forward-only: " +
				"enable the feature gate ReleaseMetadata, or remove spec.rollback.barriers",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, test.action, d.Action)
			diff(t, promotion.Rollback{Hold: test.want}, d.Rollback)
			diff(t, test.want.Until, d.RecheckAt)
		})
	}
	early := off(given(rollout().Ledger("1.1.0").RollsBack(respectingBarriers).History(entry("1.1.0").Succeeded())))
	diff(t, v1alpha1.MetadataDisabledReason, promotion.Decide(early.in()).Rollback.Reason)
	ignoring := off(given(afterProven()))
	diff(t, "1.1.0", promotion.Decide(ignoring.in()).Release.Tag)
}

// What would keep a rollback from happening is said before one is needed.
func TestUnknownMarkIsSaidBeforeAFailure(t *testing.T) {
	at := func(now time.Time, known *bool, changes ...settings) *situation {
		current := release("1.1.0").Digest("sha256:1.1.0").Obj()
		current.ForwardOnly = known
		return given(rollout().Releases(current).RollsBack(changes...).History(entry("1.1.0").Version(current).At(eleven).Succeeded())).at(now)
	}
	said := promotion.Rollback{Hold: verdict.Hold{
		Reason: v1alpha1.RollbackBarrierUnknownReason,
		Message: "would not go back from 1.1.0, because it is not known whether it can be left again: " +
			"see why the registry does not say it, or remove spec.rollback.barriers",
	}}
	for name, test := range map[string]struct {
		given *situation
		want  promotion.Rollback
		again time.Time
	}{
		"a minute after the promotion": {at(noon, nil, respectingBarriers), said, never},
		"not while the registry may answer": {
			at(eleven.Add(time.Second), nil, respectingBarriers), promotion.Rollback{}, eleven.Add(time.Minute),
		},
		"not if it is known":          {at(noon, to(false), respectingBarriers), promotion.Rollback{}, never},
		"not if marks are not obeyed": {at(noon, nil), promotion.Rollback{}, never},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, test.want, d.Rollback)
			diff(t, test.again, d.RecheckAt)
		})
	}
}

func TestRollbackIsRecordedAsOne(t *testing.T) {
	in := given(afterProven()).targets(applied("apps")).in()
	history, err := promotion.Record(in, promotion.Decide(in))
	if err != nil {
		t.Fatal(err)
	}
	diff(t, &v1alpha1.RollbackRecord{From: "1.2.0", FromID: 7, ToID: 5}, history[0].Rollback)
	diff(t, v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredBySystem, Name: promotion.SystemName}, *history[0].TriggeredBy)
	diff(t, true, history[0].IsRollback())
	diff(t, int64(8), *history[0].ID)
	diff(t, v1alpha1.BakeDeploying, history[0].State())
	diff(t, v1alpha1.PreviousBakeFailedReason, promotion.Decide(in).Recovery.Reason)
}

func TestCauseAndDueTimeAreRecorded(t *testing.T) {
	due := func(d time.Duration) *metav1.Time { return wireTime(noon.Add(d)) }
	delayed := func(r *v1alpha1.RolloutRollback) { r.Delay = &metav1.Duration{Duration: 10 * time.Minute} }
	late := func(changes ...settings) *fixture.RolloutBuilder {
		return deploying().DeployTimeout(30 * time.Minute).SelectAllChecks().RollsBack(changes...)
	}
	unhealthyTarget := target("apps", v1alpha1.TargetFailed, "health check failed after 1m: x")
	unhealthyTarget.Unhealthy = true
	for name, test := range map[string]struct {
		given *situation
		cause v1alpha1.FailureCause
		due   *metav1.Time
	}{
		"a HealthCheck": {
			given(late()).targets(applied("apps")).resetChecks(check("db").Unhealthy()), v1alpha1.CauseHealthCheckFailed, due(0),
		},
		"a HealthCheck, after a delay": {
			given(late(delayed)).targets(applied("apps")).resetChecks(check("db").Unhealthy()), v1alpha1.CauseHealthCheckFailed, due(10 * time.Minute),
		},
		"a HealthCheck of what was never applied everywhere": {
			given(late()).targets(pending("apps")).resetChecks(check("db").Unhealthy()), v1alpha1.CauseHealthCheckFailed, due(0),
		},
		"the health of what Flux has applied": {given(late()).targets(unhealthyTarget), v1alpha1.CauseTargetUnhealthy, due(0)},
		"another failure of Flux":             {given(late()).targets(target("apps", v1alpha1.TargetFailed, "no such image")), v1alpha1.CauseDeployTimeout, nil},
		"the deadline":                        {given(late()).targets(pending("apps")), v1alpha1.CauseDeployTimeout, nil},
		"the deadline, if it is selected": {
			given(late(causes(v1alpha1.CauseDeployTimeout))).targets(pending("apps")), v1alpha1.CauseDeployTimeout, due(0),
		},
		"a HealthCheck, if only the deadline is selected": {
			given(late(causes(v1alpha1.CauseDeployTimeout))).targets(applied("apps")).resetChecks(check("db").Unhealthy()),
			v1alpha1.CauseHealthCheckFailed, nil,
		},
		"only the cause, without spec.rollback": {
			given(deploying().DeployTimeout(30 * time.Minute)).targets(pending("apps")), v1alpha1.CauseDeployTimeout, nil,
		},
		"only the cause, if it is only reported": {
			func() *situation {
				s := given(deploying().DeployTimeout(30 * time.Minute)).targets(unhealthyTarget)
				s.input.Rollout.Spec.Quarantine = &v1alpha1.RolloutQuarantine{}
				return s
			}(), v1alpha1.CauseTargetUnhealthy, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.given.in()
			d := promotion.Decide(in)
			diff(t, promotion.FailBake, d.Action)
			history, err := promotion.Record(in, d)
			if err != nil {
				t.Fatal(err)
			}
			diff(t, test.cause, history[0].Cause)
			diff(t, test.due, history[0].RollbackDue)
		})
	}
}

func TestRetryForgetsTheFailure(t *testing.T) {
	in := given(afterProven().Annotate(v1alpha1.RetryAnnotation, "")).in()
	history, err := promotion.Record(in, promotion.Decide(in))
	if err != nil {
		t.Fatal(err)
	}
	diff(t, v1alpha1.FailureCause(""), history[0].Cause)
	diff(t, (*metav1.Time)(nil), history[0].RollbackDue)
}

func TestUnblockWithoutAReleaseEndsWithTheRollback(t *testing.T) {
	d := promotion.Decide(given(afterProven().Annotate(v1alpha1.UnblockFailedAnnotation, "true")).in())
	diff(t, "1.1.0", d.Release.Tag)
	diff(t, []string{v1alpha1.UnblockFailedAnnotation}, d.Consumed)
	diff(t, []verdict.Note{{
		Reason: v1alpha1.UnblockNotNeededReason, Message: "no release could be unblocked, and the Rollout goes back to 1.1.0",
	}}, d.Answers)
}

func TestRollbackNeverFails(t *testing.T) {
	overdueAt := eleven.Add(15 * time.Minute)
	late := func(at time.Time) *situation {
		return given(recoversBy(entry("1.1.0").Deploying()).DeployTimeout(15 * time.Minute).SelectAllChecks()).
			targets(applied("apps")).resetChecks(check("db").Unhealthy()).at(at)
	}
	d := promotion.Decide(late(overdueAt).in())
	diff(t, promotion.Wait, d.Action)
	diff(t, v1alpha1.AutomaticRollbackReason, d.Rollback.Reason)
	diff(t, overdueAt.Add(instant), d.RecheckAt)

	for _, at := range []time.Time{overdueAt.Add(instant), noon.Add(24 * time.Hour)} {
		d = promotion.Decide(late(at).in())
		diff(t, promotion.Wait, d.Action)
		diff(t, true, d.Overdue)
		diff(t, promotion.Rollback{Done: true, Hold: verdict.Hold{
			Reason: v1alpha1.RollbackOverdueReason,
			Message: "the rollback to 1.1.0 has been overdue since 2026-03-02T11:15:00Z: waiting for HealthCheck shop-prod/db; " +
				"Unhealthy: HealthCheck shop-prod/db; deploy a fix with unblock-failed, or pin a version",
		}}, d.Rollback)
	}
	healthy := given(recoversBy(entry("1.1.0").Deploying()).SelectAllChecks()).targets(applied("apps")).resetChecks(check("db").Healthy())
	diff(t, promotion.FinishBake, promotion.Decide(healthy.in()).Action)
}

func TestBakeOfARollback(t *testing.T) {
	bakes := func(d time.Duration) settings {
		return func(r *v1alpha1.RolloutRollback) { r.BakeTime = &metav1.Duration{Duration: d} }
	}
	started := promotion.Decide(given(recoversBy(entry("1.1.0").Deploying(), bakes(5*time.Minute)).BakeTime(time.Hour)).targets(applied("apps")).in())
	diff(t, promotion.StartBake, started.Action)
	diff(t, noon.Add(5*time.Minute), started.RecheckAt)

	baking := given(recoversBy(entry("1.1.0").Baking(noon), bakes(5*time.Minute)).BakeTime(time.Hour)).targets(applied("apps"))
	diff(t, promotion.Wait, promotion.Decide(baking.at(noon.Add(5*time.Minute-instant)).in()).Action)
	diff(t, promotion.FinishBake, promotion.Decide(baking.at(noon.Add(5*time.Minute)).in()).Action)

	unhealthy := given(recoversBy(entry("1.1.0").Baking(eleven), bakes(5*time.Minute)).SelectAllChecks()).
		targets(applied("apps")).resetChecks(check("db").Unhealthy())
	diff(t, v1alpha1.AutomaticRollbackReason, promotion.Decide(unhealthy.at(eleven.Add(20*time.Minute)).in()).Rollback.Reason)
	diff(t, v1alpha1.RollbackOverdueReason, promotion.Decide(unhealthy.at(eleven.Add(20*time.Minute+instant)).in()).Rollback.Reason)

	late := given(recoversBy(entry("1.1.0").Baking(noon), bakes(5*time.Minute)).SelectAllChecks()).targets(applied("apps"))
	diff(t, v1alpha1.AutomaticRollbackReason, promotion.Decide(late.at(noon.Add(4*time.Minute)).in()).Rollback.Reason)
	diff(t, promotion.FinishBake, promotion.Decide(late.at(noon.Add(5*time.Minute)).in()).Action)
}

func TestFixGoesPastAnOverdueRollback(t *testing.T) {
	late := func() *fixture.RolloutBuilder {
		return recoversBy(entry("1.1.0").Deploying()).Ledger("1.1.0", "1.2.0", "1.3.0").BakeTime(time.Hour)
	}
	diff(t, []string{v1alpha1.BakeRunningReason}, reasons(promotion.Decide(given(late()).targets(pending("apps")).in()))["1.3.0"])

	unprotected := recoversBy(entry("1.1.0").Deploying()).Ledger("1.1.0", "1.2.0", "1.3.0")
	diff(t, []string{v1alpha1.BakeRunningReason}, reasons(promotion.Decide(given(unprotected).targets(pending("apps")).in()))["1.3.0"])

	in := given(late().Annotate(v1alpha1.UnblockFailedAnnotation, "true")).targets(pending("apps")).in()
	d := promotion.Decide(in)
	diff(t, promotion.Supersede, d.Action)
	diff(t, "1.3.0", d.Release.Tag)
	diff(t, []string{v1alpha1.UnblockFailedAnnotation}, d.Consumed)
	diff(t, v1alpha1.PreviousBakeFailedReason, d.Recovery.Reason)

	waiting := given(late().SelectAllChecks().Annotate(v1alpha1.UnblockFailedAnnotation, "true")).targets(applied("apps")).checks(check("db").Healthy())
	d = promotion.Decide(waiting.in())
	diff(t, promotion.Supersede, d.Action)
	diff(t, []int(nil), d.Resets)
	diff(t, false, d.Overdue)
}

func TestAfterARollback(t *testing.T) {
	bad := func(digest string) *fixture.EntryBuilder {
		return unhealthyRelease().Version(release("1.2.0").Digest(digest).Obj())
	}
	back := func() *fixture.EntryBuilder { return entry("1.1.0").ID(8).Back("1.2.0", 7, 5).Succeeded() }
	for name, test := range map[string]struct {
		releases []v1alpha1.VersionInfo
		want     map[string][]string
	}{
		"the failed release stays out": {
			[]v1alpha1.VersionInfo{release("1.1.0").Obj(), release("1.2.0").Digest("sha256:bad").Obj()},
			map[string][]string{"1.2.0": {v1alpha1.FailedBeforeReason}},
		},
		"a newer one goes": {
			[]v1alpha1.VersionInfo{release("1.1.0").Obj(), release("1.2.0").Digest("sha256:bad").Obj(), release("1.3.0").Obj()},
			map[string][]string{"1.2.0": {v1alpha1.FailedBeforeReason}, "1.3.0": {}},
		},
		"other content of the same tag goes": {
			[]v1alpha1.VersionInfo{release("1.1.0").Obj(), release("1.2.0").Digest("sha256:fixed").Obj()}, map[string][]string{"1.2.0": {}},
		},
		"content that is not known stays out": {
			[]v1alpha1.VersionInfo{release("1.1.0").Obj(), release("1.2.0").Obj()}, map[string][]string{"1.2.0": {v1alpha1.FailedBeforeReason}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := rollout().Releases(test.releases...).RollsBack().History(back(), bad("sha256:bad"), entry("1.1.0").ID(5).Succeeded())
			diff(t, test.want, reasons(promotion.Decide(given(r).in())))
		})
	}
}

func TestFailuresOneAfterAnotherReachALimit(t *testing.T) {
	automatic := func(tag string) *fixture.EntryBuilder {
		return entry(tag).Grounds(v1alpha1.GroundsNewest)
	}
	failed := func(tag string) *fixture.EntryBuilder { return automatic(tag).Failed() }
	back := func() *fixture.EntryBuilder { return entry("1.1.0").Back("1.2.0", 7, 5).Succeeded() }
	held := []string{v1alpha1.RollbackLimitReason}
	free := []string{}
	for name, test := range map[string]struct {
		history []*fixture.EntryBuilder
		want    []string
	}{
		"three": {[]*fixture.EntryBuilder{back(), failed("1.4.0"), back(), failed("1.3.0"), back(), failed("1.2.0"), entry("1.1.0").Succeeded()}, held},
		"two":   {[]*fixture.EntryBuilder{back(), failed("1.4.0"), back(), failed("1.3.0"), entry("1.2.0").Succeeded()}, free},
		"a success in between": {
			[]*fixture.EntryBuilder{back(), failed("1.4.0"), back(), failed("1.3.0"), automatic("1.2.0").Succeeded(), failed("1.1.5"), failed("1.1.4")}, free,
		},
		"a manual one in between": {
			[]*fixture.EntryBuilder{back(), failed("1.4.0"), entry("1.1.0").By(v1alpha1.TriggeredByUser, "ann").Cancelled(), failed("1.3.0"), failed("1.2.0")}, free,
		},
		"an unblocked one in between": {
			[]*fixture.EntryBuilder{
				back(), failed("1.4.0"), back(),
				failed("1.3.0").Grounds(v1alpha1.GroundsNewest, v1alpha1.LiftedFailure),
				failed("1.2.5"), failed("1.2.0"), entry("1.1.0").Succeeded(),
			}, free,
		},
		"content that Flux has deployed without a request": {
			[]*fixture.EntryBuilder{
				back(), failed("1.4.0"), back(),
				entry("1.3.0").Grounds(v1alpha1.GroundsMoved).Failed(),
				failed("1.2.0"), entry("1.1.0").Succeeded(),
			}, held,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := rollout().Ledger("1.1.0", "1.5.0").RollsBack().History(test.history...)
			diff(t, map[string][]string{"1.5.0": test.want}, reasons(promotion.Decide(given(r).in())))
			if len(test.want) > 0 {
				unblocked := promotion.Decide(given(r.Annotate(v1alpha1.UnblockFailedAnnotation, "true")).in())
				diff(t, "1.5.0", unblocked.Release.Tag)
				diff(t, []string{v1alpha1.UnblockFailedAnnotation}, unblocked.Consumed)
			}
		})
	}
}

// Whatever the limit is, no release that has failed may be promoted again because a
// rollback makes it a candidate again, and no failure may be missing from the count.
func TestHistoryKeepsWhatRollbacksNeed(t *testing.T) {
	automatic := func(tag string) *fixture.EntryBuilder { return entry(tag).Grounds(v1alpha1.GroundsNewest) }
	back := func(tag string) *fixture.EntryBuilder { return entry(tag).Back("2.0.0", 7, 5).Succeeded() }
	for name, test := range map[string]struct {
		history []*fixture.EntryBuilder
		want    []string
	}{
		"what it goes back to": {
			[]*fixture.EntryBuilder{automatic("1.2.0").Cancelled(), entry("1.1.0").Succeeded(), entry("1.0.0").Succeeded()},
			[]string{"1.3.0", "1.1.0"},
		},
		"failures that are older than what is promoted": {
			[]*fixture.EntryBuilder{back("1.0.0"), automatic("1.2.0").Failed(), back("1.0.0"), automatic("1.1.0").Failed(), entry("1.0.0").Succeeded()},
			[]string{"1.3.0", "1.0.0", "1.2.0", "1.1.0"},
		},
		"both failures of a tag that was pushed again": {
			[]*fixture.EntryBuilder{back("1.0.0"), automatic("1.2.0").Failed(), back("1.0.0"), automatic("1.2.0").Failed(), entry("1.0.0").Succeeded()},
			[]string{"1.3.0", "1.0.0", "1.2.0", "1.2.0"},
		},
		"what ended the count, if there are failures before it": {
			[]*fixture.EntryBuilder{back("1.0.0"), automatic("1.2.0").Failed(), entry("1.0.5").Cancelled(), automatic("1.1.0").Failed(), entry("1.0.0").Succeeded()},
			[]string{"1.3.0", "1.0.0", "1.2.0", "1.0.5", "1.1.0"},
		},
		"failures newer than all that it can go back to": {
			[]*fixture.EntryBuilder{entry("1.2.0").Succeeded(), back("1.0.0"), automatic("1.1.0").Failed(), entry("0.9.0").Failed(), entry("1.0.0").Succeeded()},
			[]string{"1.3.0", "1.2.0", "1.1.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := rollout().HistoryLimit(1).Ledger("0.9.0", "1.0.0", "1.0.5", "1.1.0", "1.2.0", "1.3.0").RollsBack().
				History(test.history...)
			in := given(r).targets(pending("apps")).in()
			d := promotion.Decide(in)
			diff(t, "1.3.0", d.Release.Tag)
			history, err := promotion.Record(in, d)
			if err != nil {
				t.Fatal(err)
			}
			var kept []string
			for _, e := range history {
				kept = append(kept, e.Version.Tag)
			}
			diff(t, test.want, kept)
		})
	}
}
