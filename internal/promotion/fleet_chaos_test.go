// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

// freshSeedsOfFleets is how often a fleet runs with a random seed.
const freshSeedsOfFleets = 3

// TestAFleetLearns makes several Rollouts share content and quarantines, while users,
// failures and crashes do anything. After that they are left alone, and must come to rest.
func TestAFleetLearns(t *testing.T) {
	for _, seed := range seeds(freshSeedsOfFleets) {
		t.Run(fmt.Sprintf("with seed %d", seed), func(t *testing.T) { playFleet(t, random(seed)) })
	}
}

func playFleet(t *testing.T, rng *rand.Rand) {
	t.Helper()
	f := newFleet(t, rng)
	for i := range 2 + rng.IntN(2) {
		w := f.add(fmt.Sprintf("shop-%d", i), anyRollout(rng).SelectAllChecks().RollsBack(anyRollback(rng)))
		w.reflection = anyOf(rng, "Never", "IfNotPresent", "Always")
		w.addCheck("smoke")
		w.targets[0].image = anyOf(rng, "", image)
		w.rollout.Spec.Quarantine = anyQuarantine(rng)
		if rng.IntN(6) == 0 {
			w.rollout.Spec.Rollback = nil
		}
	}
	for range 70 {
		f.step(f.anything)
	}
	f.comesToRest()
}

func anyQuarantine(rng *rand.Rand) *v1alpha1.RolloutQuarantine {
	hours := func(all ...time.Duration) *metav1.Duration {
		return &metav1.Duration{Duration: anyOf(rng, all...) * time.Hour}
	}
	q := &v1alpha1.RolloutQuarantine{HoldFor: hours(1, 6, 24, 720)}
	if rng.IntN(5) == 0 {
		q.Obey = to(false)
	}
	if rng.IntN(6) == 0 {
		q.Report = v1alpha1.ReportNothing
	}
	return q
}

// anything does at most one of the things that users or bad luck can cause.
func (f *fleet) anything() {
	w := f.worlds[f.rng.IntN(len(f.worlds))]
	does := []func(){
		f.push, f.push, f.push, f.push, f.push, f.lift, f.lift, f.changeUntil, f.turnRecall, f.forget, f.recallTag, f.writeByHand, f.writeByHand, f.everythingIsSick,
		w.goOn, w.goOn, w.pinAny, w.unpin, w.unpin, w.askAny, w.pushFailedAgain, w.pushAgain, w.eraseMarks, w.crashSoon, w.crashSoon, w.goAway,
		w.turnSick, w.changeRollback, w.changeQuarantine, w.turnGate,
	}
	if f.rng.IntN(3) > 0 {
		does[f.rng.IntN(len(does))]()
	}
}

// push pushes content that is good, or bad everywhere, or bad on some Rollouts.
func (f *fleet) push() {
	f.pushed++
	bad := f.rng.IntN(3)
	for i, w := range f.worlds {
		tag := fmt.Sprintf("%d.%d.0", 2+i%2, f.pushed)
		w.push(tag)
		switch proven := len(w.memory.succeeded) > 0; {
		case !proven || bad == 0 || bad == 1 && f.rng.IntN(2) == 0:
		case f.rng.IntN(5) == 0:
			w.stuck[tag] = true
		default:
			w.unhealthy[tag] = time.Duration(f.rng.IntN(15)) * time.Minute
		}
		w.log("registry", "%s is pushed, bad: %t", tag, w.isBad(tag))
	}
}

// any returns one of the quarantines; nil if there is none.
func (f *fleet) any() *kept {
	if len(f.stored) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(f.stored))
	return f.stored[names[f.rng.IntN(len(names))]]
}

func (f *fleet) log(what string, q *kept) {
	f.lines = append(f.lines, fmt.Sprintf("[user] %s %s", what, q.Name))
}

// lift lifts a quarantine, or takes that back. The failures that were reported to it no
// longer hold a release, and neither do those that were reported to one of the same name
// that a user has deleted: that was about the same content.
func (f *fleet) lift() {
	q := f.any()
	if q == nil {
		return
	}
	q.Spec.Lifted = !q.Spec.Lifted
	f.log(fmt.Sprintf("sets lifted to %t of", q.Spec.Lifted), q)
	for _, w := range f.worlds {
		w.memory.manual += 2
		w.forgive(q)
	}
}

func (w *world) forgive(q *kept) {
	for i := range w.rollout.Status.History {
		entry := &w.rollout.Status.History[i]
		is := func(f v1alpha1.ReleaseFailure) bool { return failureIn(f) == reported{w.rollout.UID, failureOf(entry)} }
		names := entry.Quarantine != "" && v1alpha1.ReleaseQuarantineKind+" "+entry.Quarantine == q.Name
		if q.Spec.Lifted && entry.State() == v1alpha1.BakeFailed && (names || slices.ContainsFunc(q.Status.Failures, is)) {
			w.forgetFailuresOf(entry.Version.Tag)
			w.memory.forgiven[entry.Version.Tag] = true
		}
	}
}

func (f *fleet) changeUntil() {
	if q := f.any(); q != nil {
		q.Spec.Until = anyOf(f.rng, nil, nil, wireTime(f.now().Add(-time.Hour).Truncate(time.Second)), wireTime(f.now().Add(17*time.Minute).Truncate(time.Second)))
		f.log(fmt.Sprintf("sets until to %v of", q.Spec.Until), q)
	}
}

func (f *fleet) turnRecall() {
	if q := f.any(); q != nil {
		q.Spec.Enforce = anyOf(f.rng, "", v1alpha1.EnforceAlways)
		f.log(fmt.Sprintf("sets enforce to %q of", q.Spec.Enforce), q)
	}
}

// forget deletes a quarantine.
func (f *fleet) forget() {
	if q := f.any(); q != nil {
		delete(f.stored, q.Name)
		f.log("deletes", q)
	}
}

// recallTag recalls some tags.
func (f *fleet) recallTag() {
	n := f.rng.IntN(f.pushed + 2)
	q := quarantined.Quarantine{Name: fmt.Sprintf("%s recall-%d", v1alpha1.ClusterReleaseQuarantineKind, n), Spec: v1alpha1.ReleaseQuarantineSpec{
		Image: image, Tags: []string{fmt.Sprintf("2.%d.0", n), fmt.Sprintf("3.%d.0", n)}, Enforce: anyOf(f.rng, "", v1alpha1.EnforceAlways),
	}}
	if f.rng.IntN(2) == 0 {
		q.Spec.Until = wireTime(f.now().Add(time.Duration(f.rng.IntN(90)) * time.Minute).Truncate(time.Second))
	}
	f.store(q)
	f.log("creates", f.stored[q.Name])
}

// writeByHand creates a quarantine with the name that the controller would give it, often
// of a release that has succeeded.
func (f *fleet) writeByHand() {
	digest := sharedContent(fmt.Sprintf("2.%d.0", f.rng.IntN(f.pushed+2)), 0)
	if proven := f.worlds[0].memory.succeeded; len(proven) > 0 && f.rng.IntN(4) > 0 {
		digest = sharedContent(proven[len(proven)-1].Tag, 0)
	}
	name, _ := quarantine.Name(digest)
	name = v1alpha1.ReleaseQuarantineKind + " " + name
	if f.stored[name] != nil {
		return
	}
	q := quarantined.Quarantine{Name: name, Spec: v1alpha1.ReleaseQuarantineSpec{Digest: digest}}
	if f.rng.IntN(2) == 0 {
		q.Spec.Until = wireTime(f.now().Add(time.Duration(f.rng.IntN(180)) * time.Minute).Truncate(time.Second))
	}
	f.store(q)
	f.log("creates", f.stored[name])
}

// everythingIsSick breaks a service that all depend on, or mends it.
func (f *fleet) everythingIsSick() {
	sick := !f.worlds[0].sick
	for _, w := range f.worlds {
		w.sick = sick
	}
}

func (w *world) changeQuarantine() {
	w.rollout.Spec.Quarantine = anyQuarantine(w.rng)
	w.log("user", "changes spec.quarantine")
}

// comesToRest checks that everybody stops by themselves: nothing more is reported, and no
// Rollout waits for a quarantine that ends.
func (f *fleet) comesToRest() {
	f.t.Helper()
	for _, w := range f.worlds {
		w.gates, w.crashAfter, w.awayUntil, w.policyGoneUntil = nil, 0, 0, 0
		w.rollout.Spec.WantedVersion, w.rollout.Annotations = nil, nil
		w.memory.manual++
		if f.rng.IntN(2) == 0 {
			w.heal()
		}
		w.rng = nil
	}
	f.rng = nil
	f.lines = append(f.lines, "[fleet] is left alone")
	acts, quiet := f.acts(), 0
	for step := 0; quiet < 12 || !f.due().IsZero(); step++ {
		if due := f.due(); quiet > 12 && !due.IsZero() {
			f.setClock(due)
		}
		f.step(func() {})
		if quiet++; f.acts() != acts {
			acts, quiet = f.acts(), 0
		}
		if step > 2000 {
			f.fail("the fleet does not come to rest")
		}
	}
	for _, w := range f.worlds {
		f.checkAtRest(w)
	}
}

func (f *fleet) acts() (acts int) {
	for _, w := range f.worlds {
		acts += w.memory.acts
	}
	return acts
}

func (f *fleet) checkAtRest(w *world) {
	f.t.Helper()
	w.lookAtFleet()
	in := w.gather()
	if due := promotion.DueReport(in); due != nil {
		f.fail("at rest, %s still reports %+v", w.rollout.Name, *due)
	}
	if w.pass() {
		f.fail("at rest, %s writes", w.rollout.Name)
	}
	for _, candidate := range promotion.Decide(in).Candidates {
		for _, hold := range candidate.Holds {
			if hold.Reason == v1alpha1.QuarantinedReason && !hold.Until.IsZero() {
				f.fail("at rest, %s waits for %s", candidate.Release.Tag, hold.Message)
			}
		}
	}
}
