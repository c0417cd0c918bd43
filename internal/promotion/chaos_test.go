// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// final is the release that every chaos run ends with.
const final = "9.0.0"

func playChaos(t *testing.T, rng *rand.Rand) {
	t.Helper()
	w := newWorld(t, anyRollout(rng), rng)
	w.reflection = anyOf(rng, "Never", "IfNotPresent", "Always")
	for i := range rng.IntN(3) {
		w.targets = append(w.targets, &fluxObject{name: fmt.Sprintf("more-%d", i), image: anyOf(rng, "", image, "registry.example.com/shop-manifests")})
	}
	if w.rollout.Spec.HealthCheckSelector != nil {
		w.addRollout("smoke")
		w.addCheck("monitor").terse = true
	}
	if rng.IntN(3) == 0 {
		w.scheduled("any", anyOf(rng, v1alpha1.ScheduleAllow, v1alpha1.ScheduleDeny), "Asia/Kathmandu", v1alpha1.ScheduleRule{
			TimeRange: &v1alpha1.TimeRange{Start: fmt.Sprintf("%02d:15", rng.IntN(24)), End: fmt.Sprintf("%02d:40", rng.IntN(24))},
		})
	}
	steps := 60
	if w.rollout.Spec.RollsBack() {
		steps = 150
	}
	for range steps {
		w.step(w.anything)
	}
	w.comesToRest(rng)
	w.calmDown()
	w.runUntil(60, w.bringOutFinal, func() bool {
		return w.rollout.Pinned() == "" && w.current().Version.Tag == final &&
			w.current().State() == v1alpha1.BakeSucceeded && w.atRest()
	})
	w.staysAtRest()
}

func anyOf[T any](rng *rand.Rand, choices ...T) T { return choices[rng.IntN(len(choices))] }

// anyRollout returns a Rollout with any combination of settings.
func anyRollout(rng *rand.Rand) *fixture.RolloutBuilder {
	r := rollout().HistoryLimit([]int32{1, 2, 10, 100}[rng.IntN(4)]).Retention(7, []int32{3, 30}[rng.IntN(2)])
	if rng.IntN(3) > 0 {
		r.BakeTime(time.Duration(1+rng.IntN(40)) * time.Minute)
	}
	if rng.IntN(3) == 0 {
		r.DeployTimeout(time.Duration(60+rng.IntN(60)) * time.Minute)
	}
	if rng.IntN(3) > 0 {
		r.SelectAllChecks()
	}
	if rng.IntN(5) == 0 {
		r.Strategy(v1alpha1.ReleaseNext)
	}
	if rng.IntN(4) == 0 {
		r.ReleaseUpdateInterval(time.Duration(rng.IntN(90)) * time.Minute)
	}
	if rng.IntN(2) == 0 {
		r.SelectAllChecks().RollsBack(anyRollback(rng))
	}
	return r
}

// anything does at most one of the things that users or bad luck can cause.
func (w *world) anything() {
	does := []func(){
		w.pushAny, w.pushAny, w.pushAgain, w.withdrawAny, w.pinAny, w.unpin, w.unpin, w.turnGate, w.allowAny, w.crashSoon, w.goAway, w.changeByHand, w.loseStatusRarely,
		w.askAny, w.askAny, w.losePolicy,
	}
	if w.rollout.Spec.RollsBack() {
		does = append(does, w.troubles()...)
	}
	if len(w.writers) > 0 {
		does = append(does, w.ail, w.ail)
	}
	if w.rng.IntN(3) == 0 {
		does[w.rng.IntN(len(does))]()
	}
}

func (w *world) pushAny() {
	tag := fmt.Sprintf("1.%d.%d", w.rng.IntN(8), w.rng.IntN(8))
	if w.chance(5) {
		tag += fmt.Sprintf("-rc.%d", w.rng.IntN(3))
	}
	if w.has(tag) {
		return
	}
	w.registry = append(w.registry, tag)
	w.memory.pushes++
	if w.chance(3) {
		w.unhealthy[tag] = time.Duration(w.rng.IntN(60)) * time.Minute
	}
	w.log("registry", "%s is pushed, bad: %t", tag, w.isBad(tag))
}

// pushAgain moves a tag to other content.
func (w *world) pushAgain() {
	tag := w.current().Version.Tag
	if !w.has(tag) || w.chance(3) {
		return
	}
	w.pushes[tag]++
	w.memory.pushes++
	w.log("registry", "%s is pushed again", tag)
}

func (w *world) has(tag string) bool {
	for _, pushed := range w.registry {
		if pushed == tag {
			return true
		}
	}
	return false
}

// withdrawAny deletes a tag, which may move latestRef back.
func (w *world) withdrawAny() {
	if len(w.registry) == 0 {
		return
	}
	i := w.rng.IntN(len(w.registry))
	w.log("registry", "%s is deleted", w.registry[i])
	w.registry = append(w.registry[:i:i], w.registry[i+1:]...)
}

func (w *world) pinAny() {
	tag := "hotfix-bob"
	if known := w.rollout.Status.AvailableReleases; len(known) > 0 && !w.chance(4) {
		tag = known[w.rng.IntN(len(known))].Tag
	}
	w.rollout.Spec.WantedVersion = &tag
	w.manually()
	w.log("user", "pins %s", tag)
}

// askAny makes a request by annotation, valid or not.
func (w *world) askAny() {
	tag := "hotfix-bob"
	if known := w.rollout.Status.AvailableReleases; len(known) > 0 && !w.chance(6) {
		tag = known[w.rng.IntN(len(known))].Tag
	}
	requests := [][2]string{
		{force, tag}, {bypass, tag}, {unblock, "true"}, {retry, ""}, {user, "ann"}, {message, "ann said so"}, {unblock, "yes"},
	}
	request := requests[w.rng.IntN(len(requests))]
	w.annotate(request[0], request[1])
	w.log("user", "annotates %s=%s", request[0], request[1])
}

func (w *world) unpin() {
	if w.rollout.Pinned() != "" {
		w.rollout.Spec.WantedVersion = nil
		w.manually()
		w.log("user", "unpins")
	}
}

func (w *world) turnGate() {
	turned := gate("manual")
	if w.chance(2) {
		turned.Closed()
	}
	w.gates = []v1alpha1.RolloutGate{*turned.Obj()}
	w.log("gates", "passing: %t", turned.Obj().IsPassing())
}

func (w *world) allowAny() {
	var some []string
	for _, known := range w.rollout.Status.AvailableReleases {
		if w.chance(2) {
			some = append(some, known.Tag)
		}
	}
	w.gates = []v1alpha1.RolloutGate{*gate("tests").Allow(some...).Obj()}
	w.log("gates", "allow %v", some)
}

func (w *world) crashSoon() { w.crashAfter = 1 + w.rng.IntN(8) }

// losePolicy deletes the policy, and creates it again later.
func (w *world) losePolicy() {
	w.policyGoneUntil = w.iteration + 1 + w.rng.IntN(10)
	w.log("ImagePolicy", "cannot be read for %d iterations", w.policyGoneUntil-w.iteration)
}

// goAway leaves the controller without a node for a while.
func (w *world) goAway() {
	w.awayUntil = w.iteration + 1 + w.rng.IntN(30)
	w.log("fate", "no controller for %d iterations", w.awayUntil-w.iteration)
}

// changeByHand writes another version into a target as another user, who owns the field
// from then on.
func (w *world) changeByHand() {
	if len(w.rollout.Status.History) == 0 {
		return
	}
	object := w.targets[w.rng.IntN(len(w.targets))]
	object.carries, object.written = "by-hand", false
	w.memory.tampered = w.memory.lastID
	w.log("user", "changes %s", object.name)
}

func (w *world) loseStatusRarely() {
	if w.chance(4) && len(w.rollout.Status.History) > 0 {
		w.loseStatus()
		w.log("fate", "loses the status")
	}
}

// calmDown opens every gate, makes everyone prompt and publishes the final release. That
// release is promoted by a pin, because a failed release may block automatic promotion,
// and the history may be lost in a way that only a user can resolve.
func (w *world) calmDown() {
	w.gates, w.schedules, w.crashAfter, w.awayUntil, w.policyGoneUntil, w.rng, w.rollout.Annotations = nil, nil, 0, 0, 0, nil, nil
	w.heal()
	w.registry = append(w.registry, final)
	w.memory.pushes++
	w.log("world", "calms down")
}

func (w *world) bringOutFinal() {
	tag := final
	switch {
	case w.current().Version.Tag != final:
		w.manually()
		w.rollout.Spec.WantedVersion = &tag
	case w.current().State() == v1alpha1.BakeSucceeded:
		w.rollout.Spec.WantedVersion = nil
	}
}
