// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// guarded returns a Rollout that bakes for half an hour, watched by HealthChecks.
func guarded() *fixture.RolloutBuilder {
	return rollout().BakeTime(30 * time.Minute).SelectAllChecks()
}

var scenarios = map[string]scenario{
	"a release is promoted and bakes": {
		rollout: guarded(),
		setUp: func(w *world) {
			w.targets = append(w.targets, &fluxObject{name: "infra"})
			w.addCheck("smoke")
			w.addCheck("monitor").terse = true
		},
		events: []event{
			pushed(start, "1.0.0"),
			pushed(once("1.0.0", v1alpha1.BakeSucceeded), "1.1.0"),
			pushed(once("1.1.0", v1alpha1.BakeDeploying), "1.2.0"),
		},
		ends: "1.2.0 Succeeded, 1.1.0 Succeeded, 1.0.0 Succeeded",
	},

	"what runs already is taken over": {
		rollout: guarded().FirstRelease(v1alpha1.FirstReleaseApplied),
		setUp: func(w *world) {
			w.addCheck("smoke")
			w.targets[0].carries = "1.0.0"
			w.targets = append(w.targets, &fluxObject{name: "infra", carries: "1.0.0"})
			w.gates = []v1alpha1.RolloutGate{*gate("approval").Closed().Obj()}
		},
		events: []event{
			pushed(start, "1.0.0"),
			pushed(start, "1.1.0"),
			gateSet(once("1.0.0", v1alpha1.BakeSucceeded), "approval opens", gate("approval")),
		},
		ends: "1.1.0 Succeeded, 1.0.0 Succeeded",
	},

	"a bad release fails and its fix is pinned": {
		rollout: guarded(),
		setUp:   func(w *world) { w.addCheck("smoke") },
		events: []event{
			pushed(start, "1.0.0"),
			pushedBad(once("1.0.0", v1alpha1.BakeSucceeded), "1.1.0"),
			pushed(once("1.1.0", v1alpha1.BakeFailed), "1.1.1"),
			pinned(knows("1.1.1"), "1.1.1"),
			unpinned(once("1.1.1", v1alpha1.BakeSucceeded)),
			pushed(start, "1.2.0"),
		},
		ends: "1.2.0 Succeeded, 1.1.1 Succeeded, 1.1.0 Failed, 1.0.0 Succeeded",
	},

	"two people approve and a rollback asks nobody": {
		rollout: guarded().RollsBack(),
		setUp: func(w *world) {
			w.addCheck("smoke")
			w.reflection, w.used = "Always", map[types.UID]int64{}
		},
		events: []event{
			pushed(start, "1.0.0"),
			gateAsks(once("1.0.0", v1alpha1.BakeSucceeded), 2),
			pushedBad(once("1.0.0", v1alpha1.BakeSucceeded), "1.1.0"),
			approved(held("1.1.0", v1alpha1.ApprovalRequiredReason), "bob", "1.1.0"),
			approved(held("1.1.0", v1alpha1.ApprovalRequiredReason), "carol", "1.1.0"),
			pushed(once("1.1.0", v1alpha1.BakeDeploying), "1.2.0"),
			pinned(knows("1.2.0"), "1.2.0"),
			approved(once("1.0.0", v1alpha1.BakeSucceeded), "bob", "1.2.0"),
			approved(once("1.0.0", v1alpha1.BakeSucceeded), "carol", "1.2.0"),
			approved(once("1.0.0", v1alpha1.BakeSucceeded), "dave", "1.2.0"),
		},
		ends: "1.2.0 Succeeded, 1.0.0 Succeeded, 1.1.0 Failed, 1.0.0 Succeeded",
	},

	"a rollback holds after it is unpinned": {
		rollout: guarded().HistoryLimit(1),
		setUp:   func(w *world) { w.addCheck("smoke") },
		events: []event{
			pushed(start, "1.0.0"),
			pushedBad(once("1.0.0", v1alpha1.BakeSucceeded), "1.1.0"),
			pinned(once("1.1.0", v1alpha1.BakeFailed), "1.0.0"),
			unpinned(once("1.0.0", v1alpha1.BakeSucceeded)),
			pushed(held("1.1.0", v1alpha1.FailedBeforeReason), "1.1.1"),
		},
		ends: "1.1.1 Succeeded",
	},

	"a gate opens in the morning": {
		rollout: guarded(),
		setUp: func(w *world) {
			w.now, w.tick = noon.Add(-18*time.Hour), 30*time.Minute // Sunday evening
			w.addCheck("smoke")
		},
		events: []event{
			pushed(start, "1.0.0"),
			gateSet(once("1.0.0", v1alpha1.BakeSucceeded), "office hours closes, tests has passed nothing yet",
				gate("office-hours").Closed(), gate("tests").Allow()),
			pushed(start, "1.1.0"),
			pushed(start, "1.2.0"),
			gateSet(at(noon.Add(-8*time.Hour)), "tests has passed 1.1.0",
				gate("office-hours").Closed(), gate("tests").Allow("1.1.0")),
			gateSet(at(noon.Add(-4*time.Hour)), "office hours opens",
				gate("office-hours"), gate("tests").Allow("1.1.0")),
		},
		ends: "1.1.0 Succeeded, 1.0.0 Succeeded",
	},

	"a stale Healthy does not start the bake": {
		rollout: guarded(),
		setUp:   func(w *world) { w.addCheck("hourly").every = 12 },
		events: []event{
			pushed(start, "1.0.0"),
			pushedBad(once("1.0.0", v1alpha1.BakeSucceeded), "1.1.0"),
		},
		ends: "1.1.0 Failed, 1.0.0 Succeeded",
	},

	"the controller crashes between its writes": {
		rollout: guarded(),
		setUp: func(w *world) {
			w.targets = append(w.targets, &fluxObject{name: "infra"})
			w.addCheck("smoke")
		},
		events: []event{
			pushed(start, "1.0.0"),
			{once("1.0.0", v1alpha1.BakeSucceeded), "fate", "kills the controller after its next write", func(w *world) { w.crashAfter = 1 }},
			pushed(start, "1.1.0"),
			{once("1.1.0", v1alpha1.BakeSucceeded), "fate", "kills the controller after the write after the next", func(w *world) { w.crashAfter = 2 }},
			pushed(start, "1.2.0"),
		},
		ends: "1.2.0 Succeeded, 1.1.0 Succeeded, 1.0.0 Succeeded",
	},

	"of a burst of releases the newest is promoted": {
		rollout: rollout().ReleaseUpdateInterval(6 * time.Hour),
		events: []event{
			pushed(start, "1.0.0"),
			pushed(once("1.0.0", v1alpha1.BakeSucceeded), "1.1.0"),
			pushed(knows("1.1.0"), "1.2.0"),
			pushed(knows("1.2.0"), "1.3.0"),
		},
		ends: "1.3.0 Succeeded, 1.0.0 Succeeded",
	},

	"a failed promotion names what is missing at its deadline": {
		rollout: guarded().DeployTimeout(5 * time.Hour),
		setUp: func(w *world) {
			w.tick = 30 * time.Minute
			w.addCheck("smoke")
		},
		events: []event{
			pushed(start, "1.0.0"),
			{once("1.0.0", v1alpha1.BakeSucceeded), "fate", "stops the writer of HealthCheck smoke", func(w *world) { w.writers[0].every = 1 << 30 }},
			pushed(start, "1.1.0"),
		},
		ends: "1.1.0 Failed, 1.0.0 Succeeded",
	},

	"a weekend on which daylight saving time begins": {
		rollout: guarded(),
		setUp: func(w *world) {
			// The night from Saturday to Sunday has seven hours in Berlin: from 21:00 to 04:00 by
			// this scenario's clock. The next night begins at 20:00.
			w.now, w.tick = time.Date(2026, time.March, 28, 19, 0, 0, 0, time.UTC), 30*time.Minute
			w.addCheck("smoke")
			w.scheduled("weekend-nights", v1alpha1.ScheduleAllow, "Europe/Berlin", v1alpha1.ScheduleRule{
				TimeRange: &v1alpha1.TimeRange{Start: "22:00", End: "06:00"}, DaysOfWeek: []v1alpha1.DayOfWeek{"Saturday", "Sunday"},
			})
		},
		events: []event{
			pushed(start, "1.0.0"),
			pushed(once("1.0.0", v1alpha1.BakeSucceeded), "1.1.0"),
			pushed(once("1.1.0", v1alpha1.BakeSucceeded), "1.2.0"),
			pushed(at(time.Date(2026, time.March, 29, 4, 0, 0, 0, time.UTC)), "1.3.0"),
		},
		ends: "1.3.0 Succeeded, 1.2.0 Succeeded, 1.1.0 Succeeded, 1.0.0 Succeeded",
	},

	"an incident night": {
		rollout: guarded().DeployTimeout(6 * time.Hour),
		setUp: func(w *world) {
			w.now, w.tick = noon.Add(9*time.Hour), 10*time.Minute // Monday evening
			w.addCheck("shop")
		},
		events: []event{
			pushed(start, "2.0.0"),
			pushedBad(once("2.0.0", v1alpha1.BakeSucceeded), "2.1.0"),
			gateSet(once("2.1.0", v1alpha1.BakeFailed), "the night closes", gate("night").Closed()),
			asked(start, v1alpha1.RetryAnnotation, "perhaps it was the network"),
			{retried, "fate", "kills the controller after its next write", func(w *world) { w.crashAfter = 1 }},
			asked(once("2.1.0", v1alpha1.BakeFailed), v1alpha1.DeployUserAnnotation, "ann"),
			asked(start, v1alpha1.DeployMessageAnnotation, "2.1.0 broke the shop"),
			asked(start, v1alpha1.ForceDeployAnnotation, "2.0.0"),
			asked(once("2.0.0", v1alpha1.BakeSucceeded), v1alpha1.RetryAnnotation, "a slip of the hand"),
			pushed(held("2.1.0", v1alpha1.FailedBeforeReason), "2.1.1"),
			asked(held("2.1.1", v1alpha1.SomeGatesBlockingReason), v1alpha1.BypassGatesAnnotation, "2.1.1"),
			pushed(once("2.1.1", v1alpha1.BakeSucceeded), "2.2.0"),
			gateSet(at(noon.Add(20*time.Hour)), "the night is over", gate("night")),
		},
		ends: "2.2.0 Succeeded, 2.1.1 Succeeded, 2.0.0 Succeeded, 2.1.0 Failed, 2.0.0 Succeeded",
	},

	"a fix is promoted after the failure that it fixes": {
		rollout: guarded(),
		setUp:   func(w *world) { w.addCheck("smoke") },
		events: []event{
			pushed(start, "1.0.0"),
			pushedBad(once("1.0.0", v1alpha1.BakeSucceeded), "1.1.0"),
			asked(once("1.1.0", v1alpha1.BakeFailed), v1alpha1.UnblockFailedAnnotation, "true"),
			gateSet(start, "qa has passed nothing yet", gate("qa").Allow()),
			pushed(start, "1.1.1"),
			gateSet(held("1.1.1", v1alpha1.NoAllowedVersionsReason), "qa has passed 1.1.1", gate("qa").Allow("1.1.1")),
			pushedBad(once("1.1.1", v1alpha1.BakeSucceeded), "1.2.0"),
			gateSet(start, "qa opens", gate("qa")),
		},
		ends: "1.2.0 Failed, 1.1.1 Succeeded, 1.1.0 Failed, 1.0.0 Succeeded",
	},

	"no release is skipped": {
		rollout: guarded().Strategy(v1alpha1.ReleaseNext),
		setUp:   func(w *world) { w.addCheck("smoke") },
		events: []event{
			pushed(start, "1.0.0"),
			pushed(once("1.0.0", v1alpha1.BakeSucceeded), "1.1.0"),
			pushedBad(start, "1.2.0"),
			pushed(start, "1.3.0"),
			asked(once("1.2.0", v1alpha1.BakeFailed), v1alpha1.UnblockFailedAnnotation, "true"),
		},
		ends: "1.3.0 Succeeded, 1.2.0 Failed, 1.1.0 Succeeded, 1.0.0 Succeeded",
	},

	"a failing release is rolled back and its fix goes out": {
		rollout: guarded().RollsBack(),
		setUp:   func(w *world) { w.addCheck("smoke") },
		events: []event{
			pushed(start, "1.0.0"),
			pushedBad(once("1.0.0", v1alpha1.BakeSucceeded), "1.1.0"),
			gateSet(once("1.1.0", v1alpha1.BakeDeploying), "night closes", gate("night").Closed()),
			pushed(once("1.0.0", v1alpha1.BakeSucceeded), "1.1.1"),
			gateSet(held("1.1.1", v1alpha1.SomeGatesBlockingReason), "the night is over", gate("night")),
		},
		ends: "1.1.1 Succeeded, 1.0.0 Succeeded, 1.1.0 Failed, 1.0.0 Succeeded",
	},

	"a rollback waits for its delay and a retry stops it": {
		rollout: guarded().RollsBack(delayed(12 * time.Minute)),
		setUp:   func(w *world) { w.addCheck("smoke") },
		events: []event{
			pushed(start, "1.0.0"),
			pushedBad(once("1.0.0", v1alpha1.BakeSucceeded), "1.1.0"),
			asked(once("1.1.0", v1alpha1.BakeFailed), v1alpha1.RetryAnnotation, "perhaps it was the network"),
			asked(retriedAndFailed, v1alpha1.RetryAnnotation, "the database is up again"),
			{start, "user", "repairs the database", func(w *world) { w.heal() }},
			pushedBad(once("1.1.0", v1alpha1.BakeSucceeded), "1.2.0"),
		},
		ends: "1.1.0 Succeeded, 1.2.0 Failed, 1.1.0 Succeeded, 1.0.0 Succeeded",
	},

	"three failures in a row wait for a person": {
		rollout: guarded().HistoryLimit(1).RollsBack(bakingFor(10 * time.Minute)),
		setUp:   func(w *world) { w.addCheck("smoke") },
		events: []event{
			pushed(start, "1.0.0"),
			pushedBad(once("1.0.0", v1alpha1.BakeSucceeded), "1.1.0"),
			pushedBad(wentBackFrom("1.1.0"), "1.2.0"),
			pushedBad(wentBackFrom("1.2.0"), "1.3.0"),
			pushed(wentBackFrom("1.3.0"), "1.4.0"),
			asked(held("1.4.0", v1alpha1.RollbackLimitReason), v1alpha1.UnblockFailedAnnotation, "true"),
		},
		ends: "1.4.0 Succeeded, 1.0.0 Succeeded, 1.3.0 Failed, 1.2.0 Failed, 1.1.0 Failed",
	},

	"a rollback that does not help is overdue and says so": {
		rollout: guarded().BakeTime(2*time.Hour).RollsBack(bakingFor(30*time.Minute), func(r *v1alpha1.RolloutRollback) {
			r.OverdueAfter = &metav1.Duration{Duration: 20 * time.Minute}
		}),
		setUp: func(w *world) { w.addCheck("smoke") },
		events: []event{
			pushed(start, "1.0.0"),
			pushed(once("1.0.0", v1alpha1.BakeSucceeded), "1.1.0"),
			{once("1.1.0", v1alpha1.BakeInProgress), "fate", "fills the disk of the database", func(w *world) { w.sick = true }},
			pushed(isOverdue, "1.2.0"),
			{knows("1.2.0"), "user", "empties the disk", func(w *world) { w.sick = false }},
		},
		ends: "1.2.0 Succeeded, 1.0.0 Succeeded, 1.1.0 Failed, 1.0.0 Succeeded",
	},

	"a lost history is adopted": {
		rollout: guarded(),
		setUp:   func(w *world) { w.addCheck("smoke") },
		events: []event{
			pushed(start, "1.0.0"),
			gateSet(once("1.0.0", v1alpha1.BakeSucceeded), "manual closes", gate("manual").Closed()),
			pushed(start, "1.1.0"),
			{held("1.1.0", v1alpha1.SomeGatesBlockingReason), "fate", "restores the Rollout from a backup without its status", (*world).loseStatus},
		},
		ends: "1.0.0 Succeeded",
	},
}

// knows returns a function that reports whether the release is known.
// gateAsks has a gate of the cluster ask people from now on.
func gateAsks(when func(*world) bool, people int32) event {
	return event{when, "platform", fmt.Sprintf("a gate asks %d people", people), func(w *world) {
		w.asking = []v1alpha1.ClusterRolloutGate{*fixture.MakeClusterGate("prod").Asking(fixture.AskFor(people)).Obj()}
	}}
}

// approved has a user approve a release, once its digest is known.
func approved(when func(*world) bool, user, tag string) event {
	digest := func(w *world) string {
		return releases.OrEmpty(releases.Known(w.rollout.Status.AvailableReleases, tag).Digest)
	}
	return event{func(w *world) bool { return when(w) && digest(w) != "" }, user, "approves " + tag, func(w *world) {
		given := fixture.MakeApproval(user, "shop", tag).Named(user + "-" + tag).Digest(digest(w)).At(w.now.Truncate(time.Second))
		w.given = append(w.given, *given.Obj())
	}}
}

func knows(tag string) func(*world) bool {
	return func(w *world) bool {
		for _, known := range tags(w.rollout.Status.AvailableReleases) {
			if known == tag {
				return true
			}
		}
		return false
	}
}

// held returns a function that reports whether the release is held for this reason while
// no promotion is running.
func held(tag, reason string) func(*world) bool {
	return func(w *world) bool {
		for _, verdict := range w.decide(w.gather()).Candidates {
			if verdict.Release.Tag == tag && verdict.HeldBy(reason) {
				return !w.current().State().Running()
			}
		}
		return false
	}
}

// retried reports whether the current release was retried.
func retried(w *world) bool { return w.current().LastRetryTimestamp != nil }

// retriedAndFailed reports whether the current release has failed again.
func retriedAndFailed(w *world) bool { return retried(w) && w.current().State() == v1alpha1.BakeFailed }

// wentBackFrom returns a function that reports whether a rollback from the release has
// succeeded.
func wentBackFrom(tag string) func(*world) bool {
	return func(w *world) bool {
		back := w.current().Rollback
		return back != nil && back.From == tag && w.current().State() == v1alpha1.BakeSucceeded
	}
}

// isOverdue reports whether the current promotion is a rollback that is overdue.
func isOverdue(w *world) bool {
	return promotion.Decide(w.gather()).Rollback.Reason == v1alpha1.RollbackOverdueReason
}

func delayed(d time.Duration) settings {
	return func(r *v1alpha1.RolloutRollback) { r.Delay = &metav1.Duration{Duration: d} }
}

func bakingFor(d time.Duration) settings {
	return func(r *v1alpha1.RolloutRollback) { r.BakeTime = &metav1.Duration{Duration: d} }
}

// loseStatus forgets everything that only the status contained. Ids are not given twice
// as long as a target shows that there was a history.
func (w *world) loseStatus() {
	w.rollout.Status = v1alpha1.RolloutStatus{}
	lastID := w.memory.lastID
	w.memory = newMemory()
	w.memory.pushes, w.memory.manual = len(w.registry), 1
	w.memory.said = true // it is no longer known which promotion the name was given for
	for _, object := range w.targets {
		if object.written || object.promotion > 0 {
			w.memory.lastID = lastID
		}
	}
}
