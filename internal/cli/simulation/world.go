// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
)

// world is what the engine sees, and what will change in it.
type world struct {
	in        promotion.Input
	decide    func(promotion.Input) promotion.Decision
	applies   time.Duration
	schedules func(time.Time) []promotion.Window
	events    []Event
	// appliedAt is when Flux has applied the current release; zero if it has already.
	appliedAt time.Time
	// reportsAfter is how long writers of HealthChecks take, and reports are what they will
	// report.
	reportsAfter time.Duration
	reports      []report
	result       Result
}

func newWorld(in promotion.Input, a Assumptions) *world {
	w := &world{in: in, decide: promotion.Decide, applies: a.Applies, reportsAfter: a.Reports, schedules: a.Schedules, events: byTime(a.Events)}
	w.in.Rollout = in.Rollout.DeepCopy()
	w.in.Gates.Gates = copied(in.Gates.Gates, (*v1alpha1.RolloutGate).DeepCopy)
	w.in.Health.Checks = copied(in.Health.Checks, (*v1alpha1.HealthCheck).DeepCopy)
	w.in.Targets.All = slices.Clone(in.Targets.All)
	if w.isPending() {
		w.appliedAt = in.Now.Add(a.Applies)
	}
	return w
}

func copied[T any](all []T, deepCopy func(*T) *T) []T {
	result := make([]T, len(all))
	for i := range all {
		result[i] = *deepCopy(&all[i])
	}
	return result
}

func (w *world) isPending() bool {
	return slices.ContainsFunc(w.in.Targets.All, func(t content.Target) bool { return t.State == v1alpha1.TargetPending })
}

// carryOut does what the controller does with a decision, and reports whether there may
// be more to do.
func (w *world) carryOut(d promotion.Decision) (again bool, err error) {
	history, err := promotion.Record(w.in, d)
	if err != nil {
		return false, err
	}
	status := &w.in.Rollout.Status
	status.History, status.AvailableReleases = history, d.Ledger
	promotion.ResolveMetadata(w.in, status)
	for _, key := range d.Consumed {
		delete(w.in.Rollout.Annotations, key)
	}
	if d.Action.Promotes() {
		w.promoted(d)
	}
	for _, i := range d.Resets {
		w.reset(&w.in.Health.Checks[i])
	}
	if acts := d.Action != promotion.Nothing && d.Action != promotion.Wait; acts {
		w.result.Steps = append(w.result.Steps, Step{At: w.in.Now, Decision: d, Current: w.in.Rollout.Current().DeepCopy()})
		return true, nil
	}
	return len(d.Resets)+len(d.Consumed) > 0, nil
}

// promoted makes the targets wait for Flux, unless they have the release already.
func (w *world) promoted(d promotion.Decision) {
	w.in.Targets.Owned, w.in.Targets.Carried = nil, nil
	outdated := func(t content.Target) bool { return t.Reason == v1alpha1.TargetHistoryOutdated }
	if d.Action == promotion.Adopt && !slices.ContainsFunc(w.in.Targets.All, outdated) {
		return // their state is about it already
	}
	for i := range w.in.Targets.All {
		w.in.Targets.All[i].State, w.in.Targets.All[i].Digest = v1alpha1.TargetPending, ""
		w.in.Targets.All[i].Reason, w.in.Targets.All[i].Message = "", ""
		w.in.Targets.All[i].Moved, w.in.Targets.All[i].Mismatch = "", false
	}
	w.appliedAt = w.in.Now.Add(w.applies)
}

// apply makes Flux apply the current release, if the time has come. Targets that wait for
// something else stay as they are.
func (w *world) apply() {
	if w.appliedAt.IsZero() || w.appliedAt.After(w.in.Now) {
		return
	}
	w.appliedAt = time.Time{}
	for i := range w.in.Targets.All {
		if t := &w.in.Targets.All[i]; t.State == v1alpha1.TargetPending {
			t.State, t.Reason, t.Message = v1alpha1.TargetApplied, "", ""
		}
	}
}
