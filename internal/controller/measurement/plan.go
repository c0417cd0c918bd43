// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"context"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/activity"
	"github.com/fluxrollouts/rollout-controller/internal/health/class"
	"github.com/fluxrollouts/rollout-controller/internal/health/measure"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
)

// decision is what follows from all measurements so far.
type decision struct {
	problem string
	found   string
	count   measure.Count
	began   time.Time
	query   string
	release *v1alpha1.MeasuredRelease
	next    activity.Next
	verdict measure.Verdict
}

// LogValues returns the decision as keys and values for a log line.
func (d decision) LogValues() []any {
	return []any{"action", "Measure", "reason", string(d.verdict.Status), "message", d.verdict.Message + "; it " + d.next.Reason}
}

func (d decision) judge(spec measure.Spec, now time.Time) measure.Verdict {
	if d.problem != "" {
		return measure.Invalid(spec, d.problem)
	}
	if d.found != "" && !d.count.Decided() {
		return measure.Invalid(spec, d.found)
	}
	verdict := d.count.Verdict(spec, d.next.Pace, now)
	if d.next.Obstacle != "" {
		return verdict.NotMeasured(spec, d.next.Obstacle)
	}
	return verdict
}

// reason returns why the HealthCheck is not measured, or why its measurements fail.
func (d decision) reason() v1alpha1.MeasuringReason {
	switch {
	case d.problem != "":
		return v1alpha1.MeasuringNotMeasurable
	case d.found != "":
		return v1alpha1.MeasuringProblemFound
	case d.next.Obstacle != "":
		return v1alpha1.MeasuringOtherInstance
	}
	return ""
}

// wait returns how long to wait until time alone changes the verdict, or until the status
// may be written; zero means that only an event leads to another pass.
func (d decision) wait(untilWrite time.Duration, now time.Time) time.Duration {
	if d.verdict.RecheckAt.IsZero() {
		return untilWrite
	}
	recheck := max(time.Millisecond, d.verdict.RecheckAt.Sub(now))
	if untilWrite == 0 {
		return recheck
	}
	return min(untilWrite, recheck)
}

// plan plans the next measurement. Its result counts unless the HealthCheck is reset or
// changed before it is known.
func (r *Reconciler) plan(check *v1alpha1.HealthCheck, s *state, subject subject, d decision) {
	key := client.ObjectKeyFromObject(check)
	if d.next.At.IsZero() {
		r.Pool.Drop(key)
		return
	}
	about, probe, era, taken, release := subject.measured(s), s.probe, s.era, s.taken, subject.release()
	r.Pool.Schedule(key, probe.Destination, d.next.At, func(ctx context.Context) func() {
		if s.isOutdated(taken) {
			return nil
		}
		measured := result{probe.Measure(ctx, about, r.Now()), era, release}
		return func() {
			s.deliver(measured)
			r.wake(key)
		}
	})
}

// measured returns what a probe needs to know of the subject.
func (s *subject) measured(known *state) class.Subject {
	about := class.Subject{Reset: known.reset, Number: known.count.Totals().Sum()}
	if s.rollout != nil {
		about.Rollout, about.RolloutUID = s.rollout.Name, s.rollout.UID
		about.Before, about.LeftAt = lastGood(s.rollout.Status.History)
	}
	if entry := s.entry(); entry != nil {
		about.Release = entry.Version
		about.Entry, about.Retry = ptr.Deref(entry.ID, 0), evidence.PromotionID(entry)
	}
	return about
}
