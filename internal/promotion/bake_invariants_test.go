// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
)

// ailments are what health can do besides becoming bad.
type ailments struct {
	// lost is, for each release whose pods crash after they were ready, how long after it
	// was applied. Kubernetes calls that progress.
	lost map[string]time.Duration
	// fog is true while nothing can be measured.
	fog bool
}

// baked is what the controller saw of the health during a bake.
type baked struct {
	promotion string
	// counted is for how long the controller, each time it looked, saw that all was healthy.
	counted time.Duration
	at      time.Time
	healthy bool
	// lostSince is since when it saw that what was rolled out is not complete.
	lostSince time.Time
}

// addRollout adds a check of the class kustomization, which looks at what is rolled out.
func (w *world) addRollout(name string) {
	w.addCheck(name).check = *check(name).Kustomization().Obj()
}

// ail makes a release one that is lost after a while, or lifts or lowers the fog.
func (w *world) ail() {
	if known := w.rollout.Status.AvailableReleases; len(known) > 0 && w.chance(2) {
		tag := known[w.rng.IntN(len(known))].Tag
		w.lost[tag] = time.Duration(w.rng.IntN(90)) * time.Minute
		w.log("fate", "the pods of %s will crash", tag)
		return
	}
	w.fog = !w.fog
	w.log("fate", "nothing can be measured: %t", w.fog)
}

// observed returns what a writer of a HealthCheck sees.
func (w *world) observed(by *writer) (v1alpha1.HealthStatus, string) {
	app := w.targets[0]
	after, crashes := w.lost[app.applied]
	rolledOut := by.check.IsClass(v1alpha1.HealthCheckClassKustomization)
	switch {
	case w.isUnhealthy():
		return v1alpha1.HealthStatusUnhealthy, app.applied + " does not answer"
	case rolledOut && crashes && !w.now.Before(app.appliedAt.Add(after)):
		return v1alpha1.HealthStatusPending, "Available: 0/2"
	case w.fog && !rolledOut:
		return v1alpha1.HealthStatusPending, "not observed"
	}
	return v1alpha1.HealthStatusHealthy, "all is well"
}

// watchBake counts for how long everything was seen to be healthy.
func (w *world) watchBake(in promotion.Input) {
	entry, m := in.Rollout.Current(), &w.memory.baked
	if entry == nil || entry.State() != v1alpha1.BakeInProgress || m.promotion != evidence.PromotionID(entry) {
		return
	}
	if m.healthy {
		m.counted += in.Now.Sub(m.at)
	}
	m.at, m.healthy = in.Now, in.Health.Problem == nil
	lost := false
	for _, proof := range evidence.Prove(in.Health.Checks, in.Rollout.UID, entry) {
		status := proof.Check.Status.Status
		m.healthy = m.healthy && proof.State != evidence.Unreset && status == v1alpha1.HealthStatusHealthy
		lost = lost || proof.State == evidence.Undecided && status == v1alpha1.HealthStatusPending && proof.Check.IsClass(v1alpha1.HealthCheckClassKustomization)
	}
	switch {
	case !lost:
		m.lostSince = time.Time{}
	case m.lostSince.IsZero():
		m.lostSince = in.Now
	}
}

// checkBake checks that a bake that succeeds was healthy for all of its time, and that one
// that has lost what was rolled out does not wait without end.
func (w *world) checkBake(in promotion.Input, d promotion.Decision) {
	w.t.Helper()
	entry, m := in.Rollout.Current(), w.memory.baked
	if entry == nil || m.promotion == "" || m.promotion != evidence.PromotionID(entry) {
		return
	}
	if bake := in.Rollout.Spec.BakeTimeOf(entry); d.Action == promotion.FinishBake && bake != nil && m.counted < bake.Duration {
		w.fail("%s succeeded after it was seen healthy for %s of its bake time of %s", entry.Version.Tag, m.counted, bake.Duration)
	}
	patience := 10 * time.Minute
	if timeout := in.Rollout.Spec.DeployTimeout; timeout != nil {
		patience = timeout.Duration
	}
	if d.Action == promotion.Wait && !in.Rollout.Recovering() && !m.lostSince.IsZero() && in.Now.Sub(m.lostSince) > patience {
		w.fail("%s waits although it is not complete since %s", entry.Version.Tag, m.lostSince)
	}
}

// beginsBake remembers a bake from its beginning.
func (w *world) beginsBake() {
	entry := w.current()
	w.memory.baked = baked{promotion: evidence.PromotionID(entry), at: entry.BakeStartTime.Time, healthy: true}
}
