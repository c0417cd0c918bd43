// SPDX-License-Identifier: Apache-2.0

package deployments_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

var (
	update   = flag.Bool("update", false, "write the golden files again")
	onlySeed = flag.Uint64("seed", 0, "simulate with this seed instead of fresh ones")
	more     = flag.Int("seeds", 1, "simulate with this many times as many fresh seeds")
)

// freshSeeds is the number of random histories. make test-long runs more.
const freshSeeds = 200

// TestAnythingMayHappen generates random actions of users and Pods, crashes, old reads
// and lost writes. After that the world calms down, and must come to rest with everything
// rolled out. To debug a seed that failed:
//
//	go test ./internal/coordination/deployments -run TestAnythingMayHappen -seed 6845808553626121445
func TestAnythingMayHappen(t *testing.T) {
	t.Parallel()

	seeds := []uint64{*onlySeed}
	for *onlySeed == 0 && len(seeds) <= freshSeeds**more {
		seeds = append(seeds, rand.Uint64())
	}
	for _, seed := range seeds {
		if !t.Run(fmt.Sprintf("with seed %d", seed), func(t *testing.T) { playChaos(t, seed) }) {
			return
		}
	}
}

func playChaos(t *testing.T, seed uint64) {
	t.Helper()
	w := newWorld(t, rand.New(rand.NewPCG(seed, 0)))
	w.rough = w.chance(2)
	w.now = w.now.Add(time.Duration(w.rng.IntN(1000)) * time.Millisecond)
	for range 2 + w.rng.IntN(3) {
		w.createAny()
	}
	for range 1 + w.rng.IntN(2) {
		w.coordinateAny()
	}
	for range 60 {
		if w.chance(2) {
			w.anything()
		}
		w.step(time.Duration(w.rng.IntN(12000)) * time.Millisecond)
		if !w.rough && w.dies < 0 && len(w.refused) == 0 && w.chance(10) {
			w.checkFixpoint()
		}
	}
	w.calmDown()
	if w.chance(3) {
		w.refuseOne()
	}
	w.rest(500)
	w.checkRest()
}

// calmDown repairs most of what users and fate have broken.
func (w *world) calmDown() {
	w.log("everything calms down")
	w.rough, w.dies = false, -1
	for _, name := range w.crNames() {
		if isMistake(w.crs[name].Coordination) && w.chance(2) {
			w.changeCR(w.crs[name], "correct the selector of", func(r *cr) {
				r.Spec.LabelSelector = metav1.LabelSelector{MatchLabels: map[string]string{name: "yes"}}
			})
		}
	}
	clear(w.refused)
	clear(w.stale)
	for _, name := range w.appNames() {
		a := w.apps[name]
		w.edit(a, func(a *app) { a.broken, a.blinks, a.UserPaused = false, 0, false })
	}
}

// refuseOne makes writes to one object fail for a long time, while all others continue.
func (w *world) refuseOne() {
	if len(w.appNames()) == 0 || len(w.crNames()) == 0 {
		return // objects that are created now might be broken
	}
	refused := w.anyApp().Key
	if w.chance(2) {
		refused = w.anyCR().Name
	}
	w.log("fate: writes to %s are refused", refused)
	w.refused[refused] = "a policy says no"
	for range 200 {
		w.step(5 * time.Second)
	}
	w.checkNeighbours(refused)
	w.log("fate: writes to %s are made again", refused)
	clear(w.refused)
}

func (w *world) anyApp() *app {
	names := w.appNames()
	if len(names) == 0 {
		return w.createAny()
	}
	return w.apps[names[w.rng.IntN(len(names))]]
}

func (w *world) anyCR() *cr {
	names := w.crNames()
	if len(names) == 0 {
		return w.coordinateAny()
	}
	return w.crs[names[w.rng.IntN(len(names))]]
}

var groups = []string{"east", "west", "back"}

func (w *world) createAny() *app {
	name := fmt.Sprint("d", 1+w.rng.IntN(6))
	var labels []string
	for _, group := range groups {
		if w.chance(2) {
			labels = append(labels, group)
		}
	}
	w.log("people: create %s in %v", name, labels)
	replicas := int32(w.rng.IntN(5))
	var a *app
	if w.chance(2) {
		a = w.create(name, w.freshTemplate(), replicas, labels...)
	} else {
		a = w.up(name, replicas, labels...)
	}
	a.broken = w.chance(6)
	if w.chance(3) {
		a.AppliedBy = "Kustomization flux-system/shop"
	}
	if w.chance(8) {
		a.ProgressDeadline = 0
	}
	w.touched[a.Key] = true
	return a
}

func (w *world) freshTemplate() string {
	w.uids++
	return fmt.Sprint("v", w.uids)
}

func (w *world) coordinateAny() *cr {
	name := groups[w.rng.IntN(len(groups))]
	w.log("people: create coordination %s", name)
	r := w.coordinate(name)
	r.Spec.MinReadySeconds = int32(w.rng.IntN(3) * 7)
	if w.chance(2) {
		r.Spec.IdlePolicy = coordinationv1.IdleResume
	}
	if w.chance(2) {
		w.concurrent(r)
	}
	w.touched["cr"] = true
	return r
}

// anything does one random thing that users, or fate, may do.
func (w *world) anything() {
	does := []func(){
		w.changeAny, w.changeAny, w.changeAny, w.changeAny, w.scaleAny, w.blinkAny, w.resumeAny, w.holdAny, w.pauseAny, w.manifestAny, w.relabelAny,
		w.deleteAny, w.specAny, w.concurrentAny, w.selectorAny, w.coordinationAny, w.orderAny, w.fateAny, w.admissionAny,
	}
	does[w.rng.IntN(len(does))]()
}

func (w *world) touch(a *app, what string, change func(*app)) {
	w.log("people: %s %s", what, a.Key)
	w.touched[a.Key] = true
	w.edit(a, change)
}

func (w *world) changeAny() {
	a := w.anyApp()
	template, broken := w.freshTemplate(), w.chance(4)
	if len(a.sets) > 1 && w.chance(3) && !w.rough {
		template, broken = a.sets[w.rng.IntN(len(a.sets))].template, false
	}
	w.touch(a, fmt.Sprintf("change to %s (broken: %t)", template, broken), func(a *app) { a.Template, a.broken = template, broken })
}

func (w *world) scaleAny() {
	replicas := int32(w.rng.IntN(6))
	w.touch(w.anyApp(), fmt.Sprintf("scale to %d", replicas), func(a *app) { a.Replicas = replicas })
}

func (w *world) blinkAny() {
	a := w.anyApp()
	a.blinks = int32(w.rng.IntN(2))
	w.log("fate: %d Pods of %s are not ready", a.blinks, a.Key)
	w.touched[a.Key] = true
}

// resumeAny unpauses idle Deployments, by another idlePolicy, while a Pod is not ready.
func (w *world) resumeAny() {
	a := w.anyApp()
	a.blinks = 1
	w.log("fate: a Pod of %s is not ready", a.Key)
	w.touched[a.Key] = true
	for _, name := range w.crNames() {
		w.changeCR(w.crs[name], "idlePolicy Resume on", func(r *cr) { r.Spec.IdlePolicy = coordinationv1.IdleResume })
	}
}

func (w *world) holdAny() {
	held := w.chance(2)
	w.touch(w.anyApp(), fmt.Sprintf("rollout-paused is %t on", held), func(a *app) { a.UserPaused = held })
}

func (w *world) pauseAny() {
	paused := !w.chance(3)
	w.touch(w.anyApp(), fmt.Sprintf("paused is %t on", paused), func(a *app) { a.Paused, a.PausedBy = paused, "" })
}

func (w *world) manifestAny() {
	paused := w.chance(2)
	w.touch(w.anyApp(), fmt.Sprintf("manifest says paused %t on", paused), func(a *app) {
		a.Paused, a.PausedBy = paused, "kustomize-controller"
	})
}

func (w *world) relabelAny() {
	group := groups[w.rng.IntN(len(groups))]
	w.touch(w.anyApp(), "turn label "+group+" of", func(a *app) {
		if a.Labels[group] != "" {
			delete(a.Labels, group)
		} else {
			a.Labels[group] = "yes"
		}
	})
}

func (w *world) deleteAny() {
	a := w.anyApp()
	w.log("people: delete %s", a.Key)
	w.touched[a.Key] = true
	delete(w.apps, a.Key[len("shop/"):])
	w.version++
	if w.chance(2) {
		w.createAny()
	}
}

func (w *world) changeCR(r *cr, what string, change func(*cr)) {
	w.log("people: %s coordination %s", what, r.Name)
	w.touched["cr"] = true
	change(r)
	r.Generation++
	w.version++
	r.version = w.version
}

func (w *world) specAny() {
	seconds := int32(w.rng.IntN(4) * 5)
	policy := []coordinationv1.IdlePolicy{"", coordinationv1.IdlePause, coordinationv1.IdleResume}[w.rng.IntN(3)]
	w.changeCR(w.anyCR(), fmt.Sprintf("minReadySeconds %d, idlePolicy %s on", seconds, policy), func(r *cr) {
		r.Spec.MinReadySeconds, r.Spec.IdlePolicy = seconds, policy
	})
}

// concurrent sets how many may roll out at a time.
func (w *world) concurrent(r *cr) {
	most := []string{"1", "2", "3", "34%", "100%", "many"}[w.rng.IntN(6)]
	w.log("people: maxConcurrent %s on %s", most, r.Name)
	atATime(most)(&r.Coordination)
}

func (w *world) concurrentAny() { w.changeCR(w.anyCR(), "another maxConcurrent on", w.concurrent) }

func (w *world) selectorAny() {
	w.changeCR(w.anyCR(), "another selector on", func(r *cr) {
		r.Spec.LabelSelector = metav1.LabelSelector{}
		switch w.rng.IntN(6) {
		case 0:
		case 1:
			r.Spec.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "east", Operator: "Like"}}
		default:
			r.Spec.LabelSelector.MatchLabels = map[string]string{groups[w.rng.IntN(len(groups))]: "yes"}
		}
	})
}

func (w *world) coordinationAny() {
	if r := w.anyCR(); w.chance(2) {
		w.log("people: delete coordination %s", r.Name)
		delete(w.crs, r.Name)
		w.version++
	} else {
		w.coordinateAny()
	}
	w.touched["cr"] = true
}

func (w *world) orderAny() {
	order := []string{"", "1", "-1", "first"}[w.rng.IntN(4)]
	w.touch(w.anyApp(), fmt.Sprintf("order %q on", order), func(a *app) { a.Order = order })
}

func (w *world) fateAny() {
	key := w.anyApp().Key
	switch w.rng.IntN(4) {
	case 0:
		w.log("fate: the next release of %s comes back paused", key)
		w.stale[key] = "once"
	case 1:
		w.log("fate: writes to %s are refused", key)
		w.refused[key] = "admission says no"
	case 2:
		clear(w.refused)
	default:
		w.dies = w.rng.IntN(4)
	}
}

func (w *world) admissionAny() {
	w.holdForm = []string{"", "policy"}[w.rng.IntN(2)]
	w.log("fate: admission is %q", w.holdForm)
}
