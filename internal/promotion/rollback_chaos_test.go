// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// anyRollback sets spec.rollback to any combination of settings.
func anyRollback(rng *rand.Rand) settings {
	minutes := func(n int) *metav1.Duration {
		return &metav1.Duration{Duration: time.Duration(1+rng.IntN(n)) * time.Minute}
	}
	return func(r *v1alpha1.RolloutRollback) {
		*r = v1alpha1.RolloutRollback{}
		for _, set := range []func(){
			func() { r.Delay = minutes(45) },
			func() { r.BakeTime = minutes(30) },
			func() { r.OverdueAfter = minutes(60) },
			func() { r.MaxConsecutive = to(int32(1 + rng.IntN(4))) },
			func() { r.Causes = anyCauses(rng) },
			func() { r.Schedules = v1alpha1.RollbackSchedulesObey },
		} {
			if rng.IntN(2) == 0 {
				set()
			}
		}
		if rng.IntN(5) == 0 {
			r.NotBelow = fmt.Sprintf("1.%d.0", rng.IntN(6))
		}
	}
}

func anyCauses(rng *rand.Rand) []v1alpha1.FailureCause {
	all := []v1alpha1.FailureCause{v1alpha1.CauseHealthCheckFailed, v1alpha1.CauseTargetUnhealthy, v1alpha1.CauseDeployTimeout}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+rng.IntN(len(all))]
}

// troubles are what can happen only to a Rollout that goes back by itself, or matters only
// there.
func (w *world) troubles() []func() {
	often := slices.Repeat([]func(){w.pushNewer, w.pushNewer, w.goOn}, 5)
	return append(often, w.pushFailedAgain, w.pushFailedAgain, w.eraseMarks, w.turnSick, w.turnSick, w.changeRollback)
}

// pushNewer pushes a release that is newer than those before, and often bad.
func (w *world) pushNewer() {
	tag := fmt.Sprintf("2.%d.0", len(w.registry))
	if w.has(tag) {
		return
	}
	w.push(tag)
	switch proven := len(w.memory.succeeded) > 0; {
	case proven && w.chance(5):
		w.stuck[tag] = true
	case proven && w.chance(2):
		w.unhealthy[tag] = time.Duration(w.rng.IntN(20)) * time.Minute
	}
	w.log("registry", "%s is pushed, bad: %t", tag, w.isBad(tag))
}

func (w *world) isBad(tag string) bool {
	_, bad := w.unhealthy[tag]
	return bad || w.stuck[tag]
}

// pushFailedAgain moves the tag of a failed release to other content, which may be good.
func (w *world) pushFailedAgain() {
	for i := range w.rollout.Status.History {
		entry := &w.rollout.Status.History[i]
		if tag := entry.Version.Tag; entry.State() == v1alpha1.BakeFailed && w.has(tag) && w.chance(2) {
			w.pushes[tag]++
			w.memory.pushes++
			if w.chance(2) {
				delete(w.unhealthy, tag)
				delete(w.stuck, tag)
			}
			w.log("registry", "%s is pushed again", tag)
			return
		}
	}
}

// goOn asks the controller to go on after a failure.
func (w *world) goOn() {
	key := anyOf(w.rng, retry, unblock)
	w.annotate(key, "true")
	w.log("user", "annotates %s", key)
}

// eraseMarks plays a client with older types that writes the whole status back.
func (w *world) eraseMarks() {
	for i := range w.rollout.Status.History {
		entry := &w.rollout.Status.History[i]
		entry.Cause, entry.RollbackDue, entry.Rollback, entry.Quarantine = "", nil, nil, ""
		entry.UnprovenSince, entry.UnprovenFor = nil, nil
	}
	w.memory.baked = baked{}
	w.log("old client", "writes the status")
}

// turnSick breaks what has nothing to do with releases, or mends it. While it is broken,
// going back does not help.
func (w *world) turnSick() {
	w.sick = !w.sick
	w.log("fate", "everything is sick: %t", w.sick)
}

func (w *world) changeRollback() {
	w.rollout.Spec.Rollback = &v1alpha1.RolloutRollback{}
	anyRollback(w.rng)(w.rollout.Spec.Rollback)
	w.log("user", "changes spec.rollback")
}

// comesToRest checks that the controller stops by itself: nobody acts, and no release
// appears. It may do everything that it wanted to do before.
//
// It stops because an automatic promotion goes to a release that is newer than the
// current one and has not failed here. Each release can succeed once, after which it is
// current, or fail once, after which it is held. A rollback answers a failure, once, and
// cannot fail. So each release causes at most two promotions, of at most three steps each:
// the record, the start of the bake and the outcome. One more entry per release may record
// what Flux pulls.
func (w *world) comesToRest(rng *rand.Rand) {
	w.t.Helper()
	w.gates, w.schedules, w.crashAfter, w.awayUntil, w.policyGoneUntil, w.rng = nil, nil, 0, 0, 0, nil
	w.rollout.Spec.WantedVersion, w.rollout.Annotations = nil, nil
	if w.memory.manual++; rng.IntN(2) == 0 {
		w.heal()
	}
	w.log("world", "is left alone")
	most := 9 * (len(w.registry) + len(w.rollout.Status.AvailableReleases) + 2)
	acts, quiet := w.memory.acts, 0
	for step := 0; quiet < 10 || !w.recheckAt.IsZero(); step++ {
		seen := w.memory.acts
		w.step(func() {})
		if quiet++; w.memory.acts > seen {
			quiet = 0
		}
		if w.memory.acts-acts > most || step > 3000 {
			w.fail("the controller does not come to rest: it acted %d times in %d steps", w.memory.acts-acts, step)
		}
	}
	switch d := promotion.Decide(w.gather()); d.Rollback.Reason {
	case v1alpha1.RollbackDelayedReason, v1alpha1.ScheduleClosedReason, v1alpha1.PinnedReason, v1alpha1.ForcedReason:
		w.fail("at rest, it still wants to go back: %s", d.Rollback.Message)
	}
}

// heal mends everything.
func (w *world) heal() {
	clear(w.unhealthy)
	clear(w.stuck)
	clear(w.lost)
	w.sick, w.fog = false, false
}
