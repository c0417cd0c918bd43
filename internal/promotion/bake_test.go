// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// deploying returns a Rollout that deploys 1.1.0, recorded at eleven.
func deploying() *fixture.RolloutBuilder {
	return rollout().Ledger("1.1.0").History(entry("1.1.0").Deploying())
}

// appliedSince returns one whose targets were first seen applied at a time.
func appliedSince(t time.Time) *fixture.RolloutBuilder {
	return rollout().Ledger("1.1.0").History(entry("1.1.0").Deploying().AppliedSince(t))
}

// baking returns a Rollout whose 1.1.0 has been applied and healthy since eleven.
func baking() *fixture.RolloutBuilder {
	return rollout().Ledger("1.1.0").History(entry("1.1.0").Baking(eleven))
}

func failedCheck(name, message string) v1alpha1.FailedHealthCheck {
	return v1alpha1.FailedHealthCheck{Name: name, Namespace: fixture.Namespace, Message: &message}
}

func waiting(reason, message string) outcome {
	return outcome{Action: promotion.Wait, Reason: reason, Message: message}
}

func overdue(o outcome) outcome {
	o.Overdue = true
	return o
}

// standsStill is the outcome when the clock of a bake was first seen to stand still.
func standsStill(reason, message string, since time.Time) outcome {
	text := "the bake time stands still since " + since.Truncate(time.Second).Format(time.RFC3339) + "; " + message
	return withRecheck(waiting(reason, text), since.Add(time.Minute))
}

func withResets(o outcome, resets ...int) outcome {
	o.Resets = resets
	return o
}

func TestDeploying(t *testing.T) {
	const applying = "waiting for Flux to apply 1.1.0"
	started := func(message string, end time.Time) outcome {
		return outcome{
			Action: promotion.StartBake, Release: "", Reason: v1alpha1.BakeTimeStartedReason, Message: message, RecheckAt: end,
		}
	}
	succeeded := func(message string) outcome {
		return outcome{Action: promotion.FinishBake, Reason: v1alpha1.DeploymentSucceededReason, Message: message}
	}
	failed := func(message string, checks ...v1alpha1.FailedHealthCheck) outcome {
		return outcome{Action: promotion.FailBake, Reason: v1alpha1.BakeTimeFailedReason, Message: message, Failed: checks}
	}
	for name, test := range map[string]struct {
		given *situation
		want  outcome
	}{
		"waits for the targets": {
			given(deploying().BakeTime(time.Hour)).targets(applied("apps"), pending("infra")),
			waiting(v1alpha1.TargetsPendingReason, applying),
		},
		"waits while targets cannot be read": {
			given(deploying().BakeTime(time.Hour)).targetsUnreadable(), waiting(v1alpha1.TargetsPendingReason, applying),
		},
		"a target that fails may still recover": {
			given(deploying().BakeTime(time.Hour)).targets(target("apps", v1alpha1.TargetFailed, "no such image")),
			waiting(v1alpha1.TargetsPendingReason, applying),
		},
		"checks are not reset before the targets are applied": {
			given(deploying().BakeTime(time.Hour)).targets(pending("apps")).checks(check("db").Healthy()),
			waiting(v1alpha1.TargetsPendingReason, applying),
		},
		"once they are, every check that was not reset is": {
			given(deploying().BakeTime(time.Hour)).targets(applied("apps")).
				checks(check("db").Healthy()).resetChecks(check("smoke").Pending()).checks(check("web")),
			outcome{
				Action: promotion.Wait, Reason: v1alpha1.ProgressingReason, Resets: []int{0, 2},
				Message: "waiting for HealthCheck shop-prod/db, HealthCheck shop-prod/smoke, HealthCheck shop-prod/web",
			},
		},
		"says of a check that cannot be reset why": {
			given(deploying().BakeTime(time.Hour)).targets(applied("apps")).
				checks(check("db").Healthy()).resetChecks(check("smoke").Pending()).refused("db", "it is forbidden"),
			outcome{
				Action: promotion.Wait, Reason: v1alpha1.ProgressingReason, Resets: []int{0}, Overdue: true,
				Message: "applied; waiting for HealthCheck shop-prod/db, which cannot be reset: it is forbidden",
			},
		},
		"but not of one that was": {
			given(deploying().BakeTime(time.Hour)).targets(applied("apps")).resetChecks(check("db").Pending()).refused("db", "it is forbidden"),
			waiting(v1alpha1.ProgressingReason, "waiting for HealthCheck shop-prod/db"),
		},
		"at the deadline as well": {
			given(appliedSince(eleven).DeployTimeout(time.Hour)).at(one).targets(applied("apps")).
				checks(check("db").Healthy()).refused("db", "it is forbidden"),
			failed("not applied and healthy within 1h0m0s: HealthCheck shop-prod/db, which cannot be reset: it is forbidden; "+
				"HealthCheck shop-prod/db: Healthy, but for the previous release",
				failedCheck("db", "Healthy, but for the previous release")),
		},
		"waits for the check that has not spoken since": {
			given(deploying().BakeTime(time.Hour)).targets(applied("apps")).resetChecks(check("db").Healthy(), check("smoke").Pending()),
			waiting(v1alpha1.ProgressingReason, "waiting for HealthCheck shop-prod/smoke"),
		},
		"waits while checks cannot be read": {
			given(deploying().BakeTime(time.Hour)).targets(applied("apps")).resetChecks(check("db").Healthy()).healthUnreadable(),
			waiting("Broken", "it is broken"),
		},
		"a check that was reset a moment ago is not worth a word": {
			given(deploying().BakeTime(time.Hour)).targets(applied("apps")).at(noon).
				resetChecks(check("db").Pending().ChangedAt(noon.Add(-9 * time.Second))),
			withRecheck(waiting(v1alpha1.ProgressingReason, "waiting for HealthCheck shop-prod/db"), noon.Add(time.Second)),
		},
		"ten seconds after the reset the wait is overdue, and reported": {
			given(deploying().BakeTime(time.Hour)).targets(applied("apps")).at(noon).
				resetChecks(check("db").Pending().ChangedAt(noon.Add(-10 * time.Second))),
			overdue(waiting(v1alpha1.ProgressingReason, "applied; waiting for HealthCheck shop-prod/db")),
		},
		"starts the bake when all is applied and healthy": {
			given(deploying().BakeTime(time.Hour)).targets(applied("apps")).resetChecks(check("db").Healthy(), check("smoke").Healthy()),
			started("applied and healthy (2 HealthChecks); baking for 1h0m0s, until 2026-03-02T13:00:00Z", one),
		},
		"starts the bake without checks": {
			given(deploying().BakeTime(time.Hour)).targets(applied("apps")),
			started("applied; baking for 1h0m0s, until 2026-03-02T13:00:00Z", one),
		},
		"of a repository that nothing is known to apply it claims no more than that it is pulled": {
			given(deploying().BakeTime(time.Hour)).targets(pulledOnly("web")).resetChecks(check("db").Healthy()),
			started("pulled and healthy (1 HealthCheck); baking for 1h0m0s, until 2026-03-02T13:00:00Z", one),
		},
		"it names the repositories that nothing is known to apply": {
			given(deploying().SelectAllChecks()).targets(applied("apps"), pulledOnly("cart"), pulledOnly("web")).resetChecks(check("db").Healthy()),
			succeeded("applied (OCIRepository shop-prod/cart, OCIRepository shop-prod/web only pulled) and healthy (1 HealthCheck)"),
		},
		"what is only pulled waits for its checks": {
			given(deploying().BakeTime(time.Hour)).targets(pulledOnly("web")).at(noon).
				resetChecks(check("db").Pending().ChangedAt(noon.Add(-10 * time.Second))),
			overdue(waiting(v1alpha1.ProgressingReason, "pulled; waiting for HealthCheck shop-prod/db")),
		},
		"starts the bake without targets": {
			given(deploying().BakeTime(time.Hour)), started("nothing to deploy; baking for 1h0m0s, until 2026-03-02T13:00:00Z", one),
		},
		"starts the bake on its checks alone where there is no target": {
			given(deploying().BakeTime(time.Hour)).resetChecks(check("db").Healthy()),
			started("healthy (1 HealthCheck); baking for 1h0m0s, until 2026-03-02T13:00:00Z", one),
		},
		"the bake starts at a whole second, and is never short": {
			given(deploying().BakeTime(time.Hour)).at(noon.Add(-time.Millisecond)),
			started("nothing to deploy; baking for 1h0m0s, until 2026-03-02T13:00:00Z", one),
		},
		"a bake that a user let go on keeps its start": {
			given(rollout().BakeTime(2 * time.Hour).Ledger("1.1.0").History(entry("1.1.0").Deploying().BakeStart(eleven))),
			started("nothing to deploy; baking for 2h0m0s, until 2026-03-02T13:00:00Z", one),
		},
		"a bake that goes on may be over already; the next pass ends it": {
			given(rollout().BakeTime(time.Minute).Ledger("1.1.0").History(entry("1.1.0").Deploying().BakeStart(eleven))),
			started("nothing to deploy; baking for 1m0s, until 2026-03-02T11:01:00Z", time.Time{}),
		},
		"succeeds at once where there is no bake time": {
			given(deploying().SelectAllChecks()).targets(applied("apps")).resetChecks(check("db").Healthy()),
			succeeded("applied and healthy (1 HealthCheck)"),
		},
		"with a deadline alone it succeeds when applied": {
			given(deploying().DeployTimeout(2 * time.Hour)).targets(applied("apps")), succeeded("applied"),
		},
		"a selector that selects nothing waits for nothing but the targets": {
			given(deploying().SelectAllChecks()).targets(applied("apps")), succeeded("applied"),
		},
		"with nothing to protect it succeeds when applied": {
			given(deploying()).targets(applied("apps")), succeeded("applied"),
		},
		"with nothing to protect it still waits for the targets": {
			given(deploying()).targets(pending("apps")), waiting(v1alpha1.TargetsPendingReason, applying),
		},

		"an error after the reset fails it": {
			given(deploying().SelectAllChecks()).targets(applied("apps")).
				resetChecks(check("db").Healthy(), check("smoke").Unhealthy().ErrorAt(noon).Message("3 of 9 tests fail")),
			failed("HealthCheck shop-prod/smoke: 3 of 9 tests fail", failedCheck("smoke", "3 of 9 tests fail")),
		},
		"all failed checks are listed, also one without a message": {
			given(deploying().SelectAllChecks()).targets(applied("apps")).
				resetChecks(check("db").Unhealthy(), check("smoke").Healthy().ErrorAt(noon).Message("it flickered"), check("web").Healthy()),
			failed("HealthCheck shop-prod/db: reported an error without a message; HealthCheck shop-prod/smoke: it flickered",
				failedCheck("db", "reported an error without a message"), failedCheck("smoke", "it flickered")),
		},
		"the message that the reset left is not the cause": {
			given(deploying().SelectAllChecks()).targets(applied("apps")).resetChecks(check("db").Unhealthy().Message(evidence.ResetMessage)),
			failed("HealthCheck shop-prod/db: reported an error without a message", failedCheck("db", "reported an error without a message")),
		},
		"an error counts for nothing while a target is not applied": {
			given(deploying().SelectAllChecks()).targets(pending("apps")).resetChecks(check("db").Unhealthy().ErrorAt(noon)),
			waiting(v1alpha1.TargetsPendingReason, applying),
		},
		"Unhealthy that still stands from before holds the start": {
			given(deploying().SelectAllChecks()).targets(applied("apps")).
				resetChecksFrom(wireTime(eleven), check("db").Unhealthy().ErrorAt(eleven)),
			waiting(v1alpha1.ProgressingReason, "waiting for HealthCheck shop-prod/db"),
		},

		"an instant before the deadline there is still hope": {
			given(deploying().DeployTimeout(time.Hour)).at(noon.Add(-instant)).targets(pending("apps")),
			withRecheck(waiting(v1alpha1.TargetsPendingReason, applying), noon.Add(instant)),
		},
		"at the deadline, too, and the next look is an instant later": {
			given(deploying().DeployTimeout(time.Hour)).targets(pending("apps")),
			withRecheck(waiting(v1alpha1.TargetsPendingReason, applying), noon.Add(instant)),
		},
		"what is proven at the deadline is in time": {
			given(deploying().DeployTimeout(time.Hour)).targets(applied("apps")).resetChecks(check("db").Healthy()),
			succeeded("applied and healthy (1 HealthCheck)"),
		},
		"after the deadline it has failed, and the missing targets are named": {
			given(deploying().DeployTimeout(time.Hour)).at(noon.Add(instant)).
				targets(applied("apps"), pending("infra"), target("web", v1alpha1.TargetConflict, "spec.ref.semver outranks the tag")),
			failed("not applied and healthy within 1h0m0s: Kustomization shop-prod/infra has not applied it; " +
				"Kustomization shop-prod/web: spec.ref.semver outranks the tag"),
		},
		"the deadline names the checks that were not proven": {
			given(appliedSince(eleven).DeployTimeout(time.Hour)).at(one).targets(applied("apps")).
				checks(check("a").Healthy()).
				resetChecks(check("b").Healthy(), check("c").Pending().Message(evidence.ResetMessage), check("d").Pending().Message("warming up")),
			failed("not applied and healthy within 1h0m0s: "+
				"HealthCheck shop-prod/a: Healthy, but for the previous release; "+
				"HealthCheck shop-prod/c: has not reported since the release was applied; "+
				"HealthCheck shop-prod/d: warming up",
				failedCheck("a", "Healthy, but for the previous release"),
				failedCheck("c", "has not reported since the release was applied"),
				failedCheck("d", "warming up"),
			),
		},
		"and next to a target that is not applied those that have failed": {
			given(deploying().DeployTimeout(time.Hour)).at(one).targets(pending("apps")).resetChecks(check("e").Unhealthy()),
			failed("not applied and healthy within 1h0m0s: Kustomization shop-prod/apps has not applied it; "+
				"HealthCheck shop-prod/e: reported an error without a message",
				failedCheck("e", "reported an error without a message")),
		},
		"the deadline names what could not be read": {
			given(deploying().DeployTimeout(time.Hour)).at(one).targetsUnreadable().healthUnreadable(),
			failed("not applied and healthy within 1h0m0s: it is broken; it is broken"),
		},
		"what is proven counts, if nobody was there to see it in time": {
			given(deploying().DeployTimeout(time.Hour)).at(one).targets(applied("apps")).resetChecks(check("db").Healthy()),
			succeeded("applied and healthy (1 HealthCheck)"),
		},
		"so does what is disproven": {
			given(deploying().DeployTimeout(time.Hour)).at(one).targets(applied("apps")).resetChecks(check("db").Unhealthy().Message("down")),
			failed("HealthCheck shop-prod/db: down", failedCheck("db", "down")),
		},
		"checks that nobody has asked by the deadline are asked, and have as long again": {
			given(deploying().DeployTimeout(time.Hour)).at(one).targets(applied("apps")).checks(check("db").Healthy()),
			outcome{
				Action: promotion.Wait, Reason: v1alpha1.ProgressingReason, Overdue: true, Resets: []int{0},
				Message: "applied; waiting for HealthCheck shop-prod/db", RecheckAt: one.Add(time.Hour + instant),
			},
		},
		"from when the targets were seen applied": {
			given(appliedSince(noon).DeployTimeout(time.Hour)).at(one).targets(applied("apps")).resetChecks(check("db").Pending()),
			overdue(withRecheck(waiting(v1alpha1.ProgressingReason, "applied; waiting for HealthCheck shop-prod/db"), one.Add(instant))),
		},
		"and no longer": {
			given(appliedSince(noon).DeployTimeout(time.Hour)).at(one.Add(instant)).targets(applied("apps")).resetChecks(check("db").Pending()),
			failed("not applied and healthy within 1h0m0s: HealthCheck shop-prod/db: has not reported since the release was applied",
				failedCheck("db", "has not reported since the release was applied")),
		},
		"checks that were asked in time have no longer": {
			given(deploying().DeployTimeout(time.Hour)).at(one).targets(applied("apps")).resetChecks(check("db").Pending()),
			failed("not applied and healthy within 1h0m0s: HealthCheck shop-prod/db: has not reported since the release was applied",
				failedCheck("db", "has not reported since the release was applied")),
		},
		"the deadline counts from the last retry": {
			given(rollout().DeployTimeout(time.Hour).Ledger("1.1.0").History(entry("1.1.0").Deploying().Retried(noon))).
				at(noon.Add(time.Minute)).targets(pending("apps")),
			withRecheck(waiting(v1alpha1.TargetsPendingReason, applying), one.Add(instant)),
		},
		"by this clock, if an error of another one made the retry's stamp later": {
			given(rollout().DeployTimeout(time.Hour).Ledger("1.1.0").
				History(entry("1.1.0").Deploying().Retried(noon.AddDate(70, 0, 0)).RetryStart(noon))).
				at(noon.Add(time.Minute)).targets(pending("apps")),
			withRecheck(waiting(v1alpha1.TargetsPendingReason, applying), one.Add(instant)),
		},
		"a longer deadline set meanwhile is the one that counts": {
			given(deploying().DeployTimeout(3 * time.Hour)).at(one).targets(pending("apps")),
			withRecheck(waiting(v1alpha1.TargetsPendingReason, applying), eleven.Add(3*time.Hour+instant)),
		},
		"a bake that a user let go on has met its deadline": {
			given(rollout().DeployTimeout(time.Minute).Ledger("1.1.0").History(entry("1.1.0").Deploying().BakeStart(eleven))).
				targets(pending("apps")),
			waiting(v1alpha1.TargetsPendingReason, applying),
		},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, test.want, outcomeOf(promotion.Decide(test.given.in())))
		})
	}
}

func TestBaking(t *testing.T) {
	hour := func() *fixture.RolloutBuilder { return baking().BakeTime(time.Hour) }
	succeeded := func(message string) outcome {
		return outcome{Action: promotion.FinishBake, Reason: v1alpha1.BakeTimePassedReason, Message: message}
	}
	until := func(end time.Time) outcome {
		return withRecheck(waiting(v1alpha1.ProgressingReason, "baking until "+end.Format(time.RFC3339)), end)
	}
	failed := func(name, message string) outcome {
		return outcome{
			Action: promotion.FailBake, Reason: v1alpha1.BakeTimeFailedReason,
			Message: "HealthCheck shop-prod/" + name + ": " + message,
			Failed:  []v1alpha1.FailedHealthCheck{failedCheck(name, message)},
		}
	}
	for name, test := range map[string]struct {
		given *situation
		want  outcome
	}{
		"an instant before the end it goes on": {
			given(hour()).at(noon.Add(-instant)).targets(applied("apps")).resetChecks(check("db").Healthy()), until(noon),
		},
		"at the end it succeeds": {
			given(hour()).targets(applied("apps")).resetChecks(check("db").Healthy()),
			succeeded("applied and healthy (1 HealthCheck) for the bake time of 1h0m0s"),
		},
		"after the end it succeeds": {given(hour()).at(one).targets(applied("apps")), succeeded("applied for the bake time of 1h0m0s")},
		"a check that turns Unhealthy fails it": {
			given(hour()).at(noon.Add(-instant)).resetChecks(check("db").Healthy(), check("smoke").Unhealthy().Message("down")),
			failed("smoke", "down"),
		},
		"Unhealthy fails it even with an error from before the reset": {
			given(hour()).at(noon.Add(-instant)).resetChecksFrom(wireTime(eleven), check("smoke").Unhealthy().ErrorAt(eleven).Message("down")),
			failed("smoke", "down"),
		},
		"an error fails it though the check is Healthy again": {
			given(hour()).at(noon.Add(-instant)).resetChecks(check("smoke").Healthy().ErrorAt(noon).Message("was down")),
			failed("smoke", "was down"),
		},
		"an error at the end is in time to fail it": {
			given(hour()).targets(applied("apps")).resetChecks(check("smoke").Unhealthy().ErrorAt(noon).Message("down")),
			failed("smoke", "down"),
		},
		"no deadline ends a bake that has started": {
			given(hour().DeployTimeout(time.Minute)).at(noon.Add(-instant)).resetChecks(check("db").Healthy()), until(noon),
		},
		"a check that is Pending at the end keeps it open": {
			given(hour()).at(one).targets(applied("apps")).resetChecks(check("db").Pending()),
			overdue(standsStill(v1alpha1.ProgressingReason, "waiting for HealthCheck shop-prod/db", one)),
		},
		"a check that joins late is reset, and must be proven too": {
			given(hour()).targets(applied("apps")).resetChecks(check("db").Healthy()).checks(check("new").Healthy()),
			withResets(standsStill(v1alpha1.ProgressingReason, "waiting for HealthCheck shop-prod/new", noon), 1),
		},
		"a check that joins while it bakes is reset at once": {
			given(hour()).at(noon.Add(-instant)).checks(check("new").Unhealthy()),
			withResets(standsStill(v1alpha1.ProgressingReason, "waiting for HealthCheck shop-prod/new", noon.Add(-instant)), 0),
		},
		"checks that cannot be read at the end keep it open": {
			given(hour()).targets(applied("apps")).healthUnreadable(), standsStill("Broken", "it is broken", noon),
		},
		"a target that slipped back at the end keeps it open": {
			given(hour()).targets(target("apps", v1alpha1.TargetPending, "is suspended: resume it")),
			withRecheck(overdue(waiting(v1alpha1.TargetsPendingReason, "the bake time is over; Kustomization shop-prod/apps: is suspended: resume it")),
				noon.Add(15*time.Minute+instant)),
		},
		"a longer bake time set meanwhile is the one that counts": {
			given(baking().BakeTime(2 * time.Hour)).at(noon), until(one),
		},
		"a shorter one, too": {given(baking().BakeTime(time.Minute)), succeeded("nothing to deploy for the bake time of 1m0s")},
		"a bake time that was removed is over": {
			given(baking().SelectAllChecks()).resetChecks(check("db").Healthy()),
			outcome{Action: promotion.FinishBake, Reason: v1alpha1.DeploymentSucceededReason, Message: "healthy (1 HealthCheck)"},
		},
		"without a recorded start it counts from the promotion": {
			given(rollout().BakeTime(time.Hour).Ledger("1.1.0").History(entry("1.1.0").State(v1alpha1.BakeInProgress))),
			succeeded("nothing to deploy for the bake time of 1h0m0s"),
		},
		"an unprotected bake, left by an edit, ends when applied": {
			given(baking()).targets(applied("apps")),
			outcome{Action: promotion.FinishBake, Reason: v1alpha1.DeploymentSucceededReason, Message: "applied"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, test.want, outcomeOf(promotion.Decide(test.given.in())))
		})
	}
}

func TestEachSettingAloneProtects(t *testing.T) {
	for name, test := range map[string]struct {
		rollout *fixture.RolloutBuilder
		want    bool
	}{
		"nothing set":           {rollout(), false},
		"bakeTime":              {rollout().BakeTime(time.Hour), true},
		"deployTimeout":         {rollout().DeployTimeout(time.Hour), true},
		"healthCheckSelector":   {rollout().SelectAllChecks(), true},
		"releaseUpdateInterval": {rollout().ReleaseUpdateInterval(time.Minute), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := test.rollout.Ledger("1.0.0", "1.1.0").History(entry("1.0.0").Deploying())
			diff(t, test.want, promotion.Protected(&r.Obj().Spec))

			want := promotion.Supersede
			if test.want {
				want = promotion.Wait
			}
			in := given(r).at(eleven.Add(time.Minute)).targets(pending("apps")).in()
			diff(t, want, promotion.Decide(in).Action)
		})
	}
}

func TestMessagesWhileARunningPromotionWaits(t *testing.T) {
	running := func() *fixture.RolloutBuilder {
		return rollout().Ledger("1.0.0", "1.1.0").History(entry("1.0.0").Deploying())
	}
	held := map[string][]string{"1.1.0": {v1alpha1.BakeRunningReason}}
	for name, test := range map[string]struct {
		given   *situation
		want    promotion.Action
		reasons map[string][]string
	}{
		"an unprotected promotion gives way to a newer release": {
			given(running()).targets(pending("apps")), promotion.Supersede, map[string][]string{"1.1.0": {}},
		},
		"but only past the gates": {
			given(running()).targets(pending("apps")).gates(gate("manual").Closed()), promotion.Wait,
			map[string][]string{"1.1.0": {v1alpha1.SomeGatesBlockingReason}},
		},
		"once applied it succeeds first": {
			given(running()).targets(applied("apps")), promotion.FinishBake, map[string][]string{"1.1.0": {}},
		},
		"a protected promotion does not give way": {
			given(running().BakeTime(time.Hour)).targets(pending("apps")), promotion.Wait, held,
		},
		"nor does a bake": {
			given(rollout().BakeTime(2*time.Hour).Ledger("1.0.0", "1.1.0").History(entry("1.0.0").Baking(eleven))), promotion.Wait, held,
		},
		"the pass that ends a bake promotes nothing yet": {
			given(rollout().BakeTime(time.Hour).Ledger("1.0.0", "1.1.0").History(entry("1.0.0").Baking(eleven))), promotion.FinishBake, held,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, test.want, d.Action)
			diff(t, test.reasons, reasons(d))
		})
	}
}

func TestEarliestMomentIsTheOneToLookAgain(t *testing.T) {
	r := rollout().BakeTime(2*time.Hour).Ledger("1.0.0", "1.1.0").History(entry("1.0.0").Baking(eleven))
	diff(t, one, promotion.Decide(given(r.ReleaseUpdateInterval(3*time.Hour)).in()).RecheckAt)
	diff(t, noon.Add(time.Minute), promotion.Decide(given(r.ReleaseUpdateInterval(61*time.Minute)).in()).RecheckAt)
	diff(t, one, promotion.Decide(given(r.ReleaseUpdateInterval(time.Minute)).in()).RecheckAt)
}
